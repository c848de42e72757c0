import { Button, Group, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../../app/trouble'
import { useWhyNotJob } from '../../../app/why-not'
import { jobFileQuery } from '../../../api/jobs'
import type { Job } from '../../../api/types'
import { CopyField } from '../../../ui/copy'
import { IconClone, IconDownload } from '../../../ui/icons'
import { LoadingRows } from '../../../ui/loading'
import { ReasonedButton } from '../../../ui/reasoned-button'
import { paths } from '../../../util/path-builder'
import { saveFile } from '../../../util/save-file'

const ENDINGS: Readonly<Record<string, string>> = { 'openpai-v1': 'json', dlc: 'params' }

export function JobFileTab({ job }: { job: Job }) {
  const { t } = useTranslation('jobs')
  const navigate = useNavigate()
  const reason = useWhyNotJob(job)('rerun')
  const { data, error, isPending, refetch } = useQuery(jobFileQuery(job.id))
  return (
    <Stack>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows rows={1} height={200} />}
      {data !== undefined && (
        <>
          <Group gap="xs">
            <ReasonedButton
              label={t('action.clone')}
              leftSection={<IconClone size={18} />}
              reason={reason}
              onClick={() => void navigate({ to: paths.cloneOfJob(job.id) })}
            />
            <Button
              variant="default"
              leftSection={<IconDownload size={18} />}
              onClick={() => saveFile(`${job.slug}.${ENDINGS[job.dialect] ?? 'yaml'}`, data)}
            >
              {t('file.download')}
            </Button>
          </Group>
          <CopyField block text={data} label={t('file.copy')} />
        </>
      )}
    </Stack>
  )
}
