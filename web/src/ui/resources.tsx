import { Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { formatBytes } from '../util/format'

export interface Asked {
  cpus: number
  memory_bytes: number
  gpus: number
  gpu_model?: string | null
}

/** CPU, memory and GPUs in one line. */
export function Resources({ asked: { cpus, memory_bytes, gpus, gpu_model } }: { asked: Asked }) {
  const { t } = useTranslation('instances')
  const parts = [t('resources.cpus', { count: cpus }), formatBytes(memory_bytes)]
  if (gpus > 0) parts.push(gpu_model ? `${gpus} × ${gpu_model}` : t('resources.gpus', { count: gpus }))
  return (
    <Text size="sm" className="numbers">
      {parts.map((part, index) => (
        <span key={part} style={{ whiteSpace: 'nowrap' }}>
          {index > 0 && '· '}
          {part}{' '}
        </span>
      ))}
    </Text>
  )
}
