import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

import { clustersOf, nodesQuery, poolsOf } from '../api/site'
import { Helped, type InputProps } from '../ui/helped'

interface ChoiceProps extends Partial<InputProps> {
  names: readonly string[]
  /** What is taken where nothing is chosen. */
  otherwise: string
  /** Empty for that. */
  value: string
  error?: ReactNode
  onChange: (name: string) => void
}

/** One of those that there are. What was written elsewhere stays a choice. */
function Choice({ names, otherwise, value, onChange, ...rest }: ChoiceProps) {
  const known = value === '' || names.includes(value)
  return (
    <Select
      {...rest}
      placeholder={otherwise}
      clearable
      clearButtonProps={{ 'aria-label': otherwise }}
      comboboxProps={{ keepMounted: false }}
      data={known ? names : [...names, value]}
      value={value === '' ? null : value}
      onChange={(chosen) => onChange(chosen ?? '')}
    />
  )
}

interface Props {
  cluster: string
  /** Absent where the pool is chosen elsewhere. */
  pool?: string
  /** What is wrong with either. */
  errors?: Readonly<Record<string, ReactNode>>
  onChange: (change: { cluster?: string; pool?: string }) => void
}

/** The site's clusters, the first of them first. */
export function useClusters(): string[] {
  const { data = [] } = useQuery(nodesQuery)
  return clustersOf(data)
}

/** Where something is to run, on a site that has more than one place for it; else nothing. */
export function PlaceSelects({ cluster, pool, errors = {}, onChange }: Props) {
  const { t } = useTranslation()
  const { data: nodes = [] } = useQuery(nodesQuery)
  const clusters = clustersOf(nodes)
  const pools = poolsOf(nodes, cluster || clusters[0])
  const several = clusters.length > 1 || (cluster !== '' && !clusters.includes(cluster))
  const pooled = pool !== undefined && (pools.length > 0 || pool !== '')
  return (
    <>
      {several && (
        <Helped label={t('where.cluster')} help={t('where.cluster_help')}>
          {(props) => (
            <Choice
              {...props}
              names={clusters}
              otherwise={t('where.first', { cluster: clusters[0] })}
              value={cluster}
              error={errors.cluster}
              onChange={(chosen) => onChange({ cluster: chosen })}
            />
          )}
        </Helped>
      )}
      {pooled && (
        <Helped label={t('where.pool')} help={t('where.pool_help')}>
          {(props) => (
            <Choice
              {...props}
              names={pools}
              otherwise={t('where.any')}
              value={pool}
              error={errors.pool}
              onChange={(chosen) => onChange({ pool: chosen })}
            />
          )}
        </Helped>
      )}
    </>
  )
}
