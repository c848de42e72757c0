import { Button, Group, NumberInput, SimpleGrid, Text } from '@mantine/core'
import { useLocalStorage } from '@mantine/hooks'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import type { Instance } from '../../../api/types'
import { CopyField } from '../../../ui/copy'
import { IconExternal } from '../../../ui/icons'
import { Section } from '../../../ui/section'
import { forwardCommand, openCommand } from '../../../util/cli-command'
import { paths } from '../../../util/path-builder'
import { NotNow } from './not-now'

const LAST = 65_535

/** Any port of the instance: a page in the browser, or a port of one's own machine. */
export function PortsTab({ instance }: { instance: Instance }) {
  if (!instance.actions.includes('open')) return <NotNow instance={instance} action="open" />
  return <Ports instance={instance} />
}

function Ports({ instance }: { instance: Instance }) {
  const { t } = useTranslation('apps')
  const [kept, keep] = useLocalStorage<number>({
    key: `berth.port.${instance.id}`,
    defaultValue: 8000,
    getInitialValueInEffect: false,
  })
  const [typed, setTyped] = useState<string | number>(kept)
  const port = Number(typed)
  const right = Number.isInteger(port) && port >= 1 && port <= LAST
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Section title={t('ports.browser')}>
        <Text size="sm">{t('ports.browser_text')}</Text>
        <Group align="flex-end" gap="xs">
          <NumberInput
            label={t('ports.port')}
            value={typed}
            onChange={setTyped}
            error={right ? null : t('ports.wrong')}
            allowDecimal={false}
            allowNegative={false}
            thousandSeparator={false}
            min={1}
            max={LAST}
            clampBehavior="none"
            hideControls
            w={160}
          />
          <Button
            component="a"
            href={right ? paths.enter(instance.id, String(port)) : undefined}
            aria-disabled={!right || undefined}
            data-disabled={!right || undefined}
            target="_blank"
            rel="noopener"
            leftSection={<IconExternal size={18} />}
            onClick={() => right && keep(port)}
          >
            {t('toolbar.new_tab')}
          </Button>
        </Group>
        <Text size="sm" c="dimmed">
          {t('ports.how')}
        </Text>
      </Section>
      <Section title={t('ports.here')}>
        <Text size="sm">{t('ports.here_text')}</Text>
        <CopyField block text={forwardCommand(instance.name, right ? port : kept)} />
        <Text size="sm">{t('ports.open_text')}</Text>
        <CopyField block text={openCommand(instance.name, String(right ? port : kept))} />
      </Section>
    </SimpleGrid>
  )
}
