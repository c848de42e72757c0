import type { TFunction } from 'i18next'

import type { EndCause } from '../api/types'

export interface End {
  cause: EndCause
  exit_code?: number | null
  message?: string
  task?: string | null
  by?: string | null
}

/** How something came to its end. */
export function endText(end: End, t: TFunction<'jobs'>): string {
  const code = end.exit_code ?? 0
  const values = { code, signal: code - 128, message: end.message ?? '' }
  const parts = [
    end.task ? t('end.task', { task: end.task }) : '',
    t(`cause.${end.cause}`, values),
    end.by ? t('end.by', { by: end.by }) : '',
  ]
  return parts.filter((part) => part !== '').join(t('end.joint'))
}
