import { ActionIcon, Button, Group, Stack, Text, TextInput } from '@mantine/core'
import type { ComponentProps } from 'react'
import { useTranslation } from 'react-i18next'

import { IconPlus, IconTrash } from './icons'

interface Row {
  id: number
  key: string
  value: string
}

type Cell = Pick<ComponentProps<typeof TextInput>, 'value' | 'onChange' | 'onBlur' | 'error'>

interface Props {
  rows: readonly Row[]
  cell: (index: number, part: 'key' | 'value') => Cell
  onAdd: (row: Row) => void
  onRemove: (index: number) => void
}

/** Variables of an environment, a line each. */
export function EnvRows({ rows, cell, onAdd, onRemove }: Props) {
  const { t } = useTranslation('create')
  const typed = { spellCheck: false, autoCapitalize: 'none' } as const
  return (
    <Stack gap="xs">
      <Text size="sm" fw={500}>
        {t('env.label')}
      </Text>
      <Text size="xs" c="dimmed">
        {t('env.help')}
      </Text>
      {rows.map((row, index) => (
        <Group key={row.id} gap="xs" wrap="nowrap" align="flex-start">
          <TextInput
            flex={1}
            aria-label={t('env.key', { number: index + 1 })}
            placeholder={t('env.key_placeholder')}
            {...typed}
            {...cell(index, 'key')}
          />
          <TextInput
            flex={2}
            aria-label={t('env.value', { number: index + 1 })}
            placeholder={t('env.value_placeholder')}
            {...typed}
            {...cell(index, 'value')}
          />
          <ActionIcon
            variant="subtle"
            color="red"
            size={36}
            aria-label={t('env.remove', { number: index + 1 })}
            onClick={() => onRemove(index)}
          >
            <IconTrash size={18} />
          </ActionIcon>
        </Group>
      ))}
      <Group>
        <Button
          variant="default"
          size="xs"
          leftSection={<IconPlus size={16} />}
          onClick={() => onAdd({ id: Math.max(0, ...rows.map((row) => row.id)) + 1, key: '', value: '' })}
        >
          {t('env.add')}
        </Button>
      </Group>
    </Stack>
  )
}
