import { Badge, Group, Stack, Switch } from '@mantine/core'
import { useLocalStorage } from '@mantine/hooks'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

interface Props {
  help: string
  /** How many of the settings below are not as they are of themselves. */
  set: number
  children: ReactNode
}

/** Whether it is on, as this browser remembers it. */
export function useProfessional() {
  return useLocalStorage({
    key: 'berth.professional',
    defaultValue: false,
    getInitialValueInEffect: false,
  })
}

/** What most do without, behind a switch that is remembered. What is set there is never hidden without a word. */
export function ProfessionalMode({ help, set, children }: Props) {
  const { t } = useTranslation('jobs')
  const [on, setOn] = useProfessional()
  return (
    <Stack>
      <Group>
        <Switch
          label={t('new.professional')}
          description={help}
          checked={on}
          onChange={(event) => setOn(event.currentTarget.checked)}
        />
        {!on && set > 0 && (
          <Badge variant="light" tt="none">
            {t('new.hidden', { count: set })}
          </Badge>
        )}
      </Group>
      {on && children}
    </Stack>
  )
}
