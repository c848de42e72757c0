import { Skeleton, Stack } from '@mantine/core'
import { useTranslation } from 'react-i18next'

/** Rows that will be there in a moment. */
export function LoadingRows({ rows = 3, height = 56 }: { rows?: number; height?: number }) {
  const { t } = useTranslation()
  return (
    <Stack className="after-a-moment" role="status" aria-label={t('loading')}>
      {Array.from({ length: rows }, (_, row) => (
        <Skeleton key={row} height={height} />
      ))}
    </Stack>
  )
}
