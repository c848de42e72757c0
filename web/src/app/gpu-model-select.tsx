import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

import { clusterQuery } from '../api/site'
import { sumsByModel } from '../util/free-blocks'

interface Props {
  id?: string
  label?: string
  description?: string
  error?: ReactNode
  /** Empty for any. */
  value: string
  onChange: (model: string) => void
  disabled?: boolean
}

/** The models that there are, each with how many of it are free now. What was written elsewhere stays a choice. */
export function GpuModelSelect({ value, onChange, ...rest }: Props) {
  const { t } = useTranslation()
  const { data } = useQuery(clusterQuery)
  const models = sumsByModel(data?.nodes ?? []).map(({ model, free, all }) => ({
    value: model,
    label: t('gpu_model.choice', { model, free, all }),
  }))
  const known = value === '' || models.some((model) => model.value === value)
  return (
    <Select
      {...rest}
      placeholder={t('gpu_model.any')}
      clearable
      clearButtonProps={{ 'aria-label': t('gpu_model.clear') }}
      comboboxProps={{ keepMounted: false }}
      nothingFoundMessage={t('gpu_model.none')}
      data={known ? models : [...models, { value, label: value }]}
      value={value === '' ? null : value}
      onChange={(chosen) => onChange(chosen ?? '')}
    />
  )
}
