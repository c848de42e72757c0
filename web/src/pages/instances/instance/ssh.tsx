import { Alert, Button, Group, SimpleGrid, Skeleton, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../../app/trouble'
import { ApiError } from '../../../api/client'
import { sshDoorQuery, sshKeysQuery } from '../../../api/ssh'
import type { Instance, SshDoor } from '../../../api/types'
import { CopyField } from '../../../ui/copy'
import { IconCode, IconInfo } from '../../../ui/icons'
import { Section } from '../../../ui/section'
import { HOME } from '../../../util/folder'
import { hostForPrograms } from '../../../util/own-address'
import {
  copyCommands,
  jetbrainsLink,
  knownHostsLine,
  sshCommand,
  sshConfigBlock,
  type SshTarget,
  sshTarget,
  vscodeLink,
} from '../../../util/ssh-lines'
import { KeyButtons } from '../../settings/ssh-keys'

/** All that it takes to be in the instance with an SSH client of one's own. */
export function SshTab({ instance }: { instance: Instance }) {
  const { t } = useTranslation('ssh')
  const { data: door, error, isPending, refetch } = useQuery(sshDoorQuery)
  if (isPending) return <Skeleton className="after-a-moment" height={240} />
  if (error instanceof ApiError && error.problem.code === 'not_found') return <Text>{t('off')}</Text>
  if (error) return <Trouble error={error} onRetry={() => void refetch()} />
  return <Ways instance={instance} door={door} />
}

function Ways({ instance, door }: { instance: Instance; door: SshDoor }) {
  const { t } = useTranslation('ssh')
  const target = sshTarget(door, hostForPrograms(window.location.hostname), instance.user, instance.slug)
  return (
    <Stack>
      <NoKeyYet />
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Stack>
          <Section title={t('command.title')}>
            <Text size="sm">{t('command.text')}</Text>
            <CopyField block text={sshCommand(target)} label={t('command.copy')} />
            {instance.status.state !== 'running' && (
              <Text size="sm" c="dimmed">
                {t('command.waits')}
              </Text>
            )}
          </Section>
          <Section title={t('editors.title')}>
            <Text size="sm">{t('editors.text')}</Text>
            <Editors target={target} />
          </Section>
          <Section title={t('files.title')}>
            <CopyField block text={copyCommands(target)} label={t('files.copy')} />
          </Section>
        </Stack>
        <Stack>
          <Section title={t('config.title')}>
            <Text size="sm">{t('config.text', { alias: target.alias })}</Text>
            <CopyField block text={sshConfigBlock(target)} label={t('config.copy')} />
            <Text size="sm">{t('config.by_berth')}</Text>
            <CopyField block text={`berth config-ssh\nssh ${target.alias}`} />
          </Section>
          <Section title={t('host_key.title')}>
            <Text size="sm">{t('host_key.text')}</Text>
            <CopyField text={door.fingerprint} label={t('host_key.copy')} />
            <Text size="sm">{t('host_key.known_hosts')}</Text>
            <CopyField block text={knownHostsLine(target, door.host_key)} />
          </Section>
        </Stack>
      </SimpleGrid>
    </Stack>
  )
}

function Editors({ target }: { target: SshTarget }) {
  const { t } = useTranslation('ssh')
  const links = [
    ['vscode', vscodeLink('vscode', target, HOME)],
    ['cursor', vscodeLink('cursor', target, HOME)],
    ['jetbrains', jetbrainsLink(target, HOME)],
  ] as const
  return (
    <Group gap="xs">
      {links.map(([editor, link]) => (
        <Button key={editor} component="a" href={link} variant="default" leftSection={<IconCode size={18} />}>
          {t(`editors.${editor}`)}
        </Button>
      ))}
    </Group>
  )
}

function NoKeyYet() {
  const { t } = useTranslation('ssh')
  const { data: keys } = useQuery(sshKeysQuery)
  if (keys?.length !== 0) return null
  return (
    <Alert color="blue" variant="light" icon={<IconInfo />} title={t('no_key.title')}>
      <Stack gap="xs">
        <Text size="sm">{t('no_key.text')}</Text>
        <KeyButtons />
      </Stack>
    </Alert>
  )
}
