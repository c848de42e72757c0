import { Anchor, Button, Group, SimpleGrid, Stack, Text, ThemeIcon } from '@mantine/core'
import { useLocalStorage } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

import { instancesQuery } from '../../api/instances'
import { sshKeysQuery } from '../../api/ssh'
import { IconBox, IconCheck, IconKey, IconUpload } from '../../ui/icons'
import { Section } from '../../ui/section'
import { paths } from '../../util/path-builder'

/** For whoever is new here; gone once it is hidden or there is nothing left to show. */
export function FirstSteps() {
  const { t } = useTranslation('home')
  const { data: keys } = useQuery(sshKeysQuery)
  const { data: instances } = useQuery(instancesQuery)
  const [hidden, setHidden] = useLocalStorage({
    key: 'berth.first-steps-hidden',
    defaultValue: false,
    getInitialValueInEffect: false,
  })
  if (hidden || !keys || !instances || (keys.length > 0 && instances.length > 0)) return null
  const [first] = instances
  return (
    <Section
      title={t('begin.title')}
      aside={
        <Button variant="subtle" size="compact-sm" onClick={() => setHidden(true)}>
          {t('begin.hide')}
        </Button>
      }
    >
      <Text size="sm" c="dimmed">
        {t('begin.text')}
      </Text>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <Step icon={<IconBox size={20} />} done={instances.length > 0} text={t('begin.instance_text')}>
          <Anchor component={Link} to={paths.newInstance()} fw={600}>
            {t('begin.instance')}
          </Anchor>
        </Step>
        <Step icon={<IconKey size={20} />} done={keys.length > 0} text={t('begin.key_text')}>
          <Anchor component={Link} to={paths.settings('ssh-keys')} fw={600}>
            {t('begin.key')}
          </Anchor>
        </Step>
        <Step icon={<IconUpload size={20} />} done={false} text={t('begin.files_text')}>
          {first ? (
            <Anchor component={Link} to={paths.instance(first, 'ssh')} fw={600}>
              {t('begin.how')}
            </Anchor>
          ) : (
            <Text fw={600}>{t('begin.files')}</Text>
          )}
        </Step>
      </SimpleGrid>
    </Section>
  )
}

interface StepProps {
  icon: ReactNode
  done: boolean
  text: string
  children: ReactNode
}

function Step({ icon, done, text, children }: StepProps) {
  const { t } = useTranslation('home')
  return (
    <Group wrap="nowrap" align="flex-start" gap="sm">
      <ThemeIcon variant="light" color={done ? 'green' : 'blue'} size="lg">
        {done ? <IconCheck size={20} /> : icon}
      </ThemeIcon>
      <Stack gap={2}>
        <Group gap="xs">
          {children}
          {done && (
            <Text size="sm" c="dimmed">
              {t('begin.done')}
            </Text>
          )}
        </Group>
        <Text size="sm" c="dimmed">
          {text}
        </Text>
      </Stack>
    </Group>
  )
}
