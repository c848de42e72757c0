import { Group, Kbd, Stack, Switch, Table, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { Dialog } from '../ui/dialog'
import { LETTERS, type Place } from './navigation'

interface Props {
  opened: boolean
  places: readonly Place[]
  on: boolean
  onSwitch: (on: boolean) => void
  onClose: () => void
}

/** All keys, and the switch for those who speak to their computer. */
export function ShortcutList({ opened, places, on, onSwitch, onClose }: Props) {
  const { t } = useTranslation()
  const keys: [string[], string][] = [
    [[t('palette.keys'), '/'], t('palette.open')],
    [['c'], t('shortcuts.create')],
    ...places.map((place): [string[], string] => [
      [`g ${LETTERS[place.key]}`],
      t('shortcuts.go_to', { place: t(`place.${place.key}`) }),
    ]),
    [['?'], t('shortcuts.list')],
  ]
  return (
    <Dialog opened={opened} title={t('shortcuts.title')} onClose={onClose}>
      <Stack>
        <Switch
          label={t('shortcuts.on')}
          description={t('shortcuts.on_help')}
          checked={on}
          onChange={(event) => onSwitch(event.currentTarget.checked)}
        />
        <Table aria-label={t('shortcuts.title')}>
          <Table.Tbody>
            {keys.map(([pressed, what]) => (
              <Table.Tr key={what}>
                <Table.Td w={130}>
                  <Group gap={6} wrap="nowrap">
                    {pressed.map((key) => (
                      <Kbd key={key}>{key}</Kbd>
                    ))}
                  </Group>
                </Table.Td>
                <Table.Td>
                  <Text size="sm">{what}</Text>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Stack>
    </Dialog>
  )
}
