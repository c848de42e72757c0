import { useQuery } from '@tanstack/react-query'
import { type ReactNode, Suspense } from 'react'
import { useTranslation } from 'react-i18next'

import { clustersOf, nodesQuery, poolsOf } from '../api/site'
import { Helped } from '../ui/helped'
import { later } from '../util/later'

// Most sites have one place only.
const Choice = later(async () => ({ default: (await import('./choice')).Choice }))

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
    <Suspense>
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
    </Suspense>
  )
}
