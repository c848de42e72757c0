import { Code, SimpleGrid, Stack, Text } from '@mantine/core'
import type { TFunction } from 'i18next'
import { useTranslation } from 'react-i18next'

import type { Instance } from '../../../api/types'
import { CopyField } from '../../../ui/copy'
import { Facts, type Fact } from '../../../ui/facts'
import { Section } from '../../../ui/section'
import { TimeAgo } from '../../../ui/time-ago'
import { logsCommand, shellCommand } from '../../../util/cli-command'
import { formatBytes } from '../../../util/format'
import { quoteWord } from '../../../util/shell-words'
import { Failure } from './failure'
import { LastSave } from './saves'
import { isStarting, StartSteps } from './start-steps'

export function OverviewTab({ instance }: { instance: Instance }) {
  const { t } = useTranslation(['instances', 'common'])
  return (
    <Stack>
      <Failure instance={instance} />
      {isStarting(instance) && <StartSteps instance={instance} />}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Section title={t('overview.specification')}>
          <Specification instance={instance} />
        </Section>
        <Stack>
          <Section title={t('overview.storage')}>
            <Text size="sm">{t('overview.stays')}</Text>
          </Section>
          <LastSave instance={instance} />
          <Section title={t('overview.from_command_line')}>
            <Text size="sm">{t('overview.cli_shell')}</Text>
            <CopyField block text={shellCommand(instance.name)} />
            <Text size="sm">{t('overview.cli_logs')}</Text>
            <CopyField block text={logsCommand(instance.name)} />
          </Section>
        </Stack>
      </SimpleGrid>
    </Stack>
  )
}

function gpuFacts(
  { gpus, gpu_model: model, cards }: Instance,
  t: TFunction<['instances', 'common']>,
): Fact[] {
  if (gpus === 0) return []
  return [
    [t('overview.gpu_model'), model ?? t('common:gpu_model.any')],
    ...(cards && cards.length > 0
      ? [
          [
            t('overview.cards'),
            <Stack key="cards" gap={2} align="flex-start">
              {cards.map((card) => (
                <CopyField key={card} text={card} />
              ))}
            </Stack>,
          ] as const,
        ]
      : []),
  ]
}

function Specification({ instance }: { instance: Instance }) {
  const { t } = useTranslation(['instances', 'common'])
  const env = Object.entries(instance.env)
  const rows: Fact[] = [
    [t('overview.image'), <CopyField key="image" text={instance.image} />],
    [t('overview.cpus'), String(instance.cpus)],
    [t('overview.memory'), formatBytes(instance.memory_bytes)],
    [t('overview.shm'), formatBytes(instance.shm_bytes)],
    [t('overview.gpus'), String(instance.gpus)],
    ...gpuFacts(instance, t),
    ...(instance.cluster ? [[t('overview.cluster'), instance.cluster] as const] : []),
    ...(instance.pool ? [[t('overview.pool'), instance.pool] as const] : []),
    [
      t('overview.command'),
      instance.command.length === 0 ? (
        t('overview.no_command')
      ) : (
        <CopyField key="command" text={instance.command.map(quoteWord).join(' ')} />
      ),
    ],
    [
      t('overview.env'),
      env.length === 0 ? (
        t('common:none')
      ) : (
        <Stack key="env" gap={2} align="flex-start">
          {env.map(([key, value]) => (
            <Code key={key} className="breakable">{`${key}=${value}`}</Code>
          ))}
        </Stack>
      ),
    ],
    [t('overview.created'), <TimeAgo key="created" at={instance.created_at} />],
    [t('overview.id'), <CopyField key="id" text={instance.id} />],
  ]
  return <Facts facts={rows} />
}
