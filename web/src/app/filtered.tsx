import { Button, Group, MultiSelect, Stack, TextInput } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

import { EmptyState } from '../ui/empty-state'
import { IconSearch } from '../ui/icons'
import { type Filterable, filtered, filterOf, type FilterSearch } from '../util/filter'
import { useTyped } from './use-typed'

interface Props<T> extends Filterable<T> {
  rows: readonly T[]
  /** What can be searched for. */
  label: string
  stateLabel: (state: string) => string
  /** Stands beside the filters. */
  aside?: ReactNode
  children: (shown: T[]) => ReactNode
}

const NOTHING: FilterSearch = { find: undefined, state: undefined, user: undefined }

/** Rows, as far as they are asked for by the address; or that there is none such. */
export function Filtered<T>({ rows, label, stateLabel, aside, children, ...of }: Props<T>) {
  const { t } = useTranslation()
  const search = useSearch({ strict: false })
  const navigate = useNavigate()
  const set = (change: FilterSearch) =>
    void navigate({ to: '.', search: (before) => ({ ...before, ...change }), replace: true })
  const [typed, type] = useTyped(search.find ?? '', (text) => set({ find: text || undefined }))
  const filter = filterOf(search)
  const shown = filtered(rows, filter, of)
  return (
    <Stack>
      <Group justify="space-between" align="flex-start">
        <Group gap="xs" align="flex-start">
          <TextInput
            aria-label={label}
            placeholder={label}
            w={{ base: '100%', xs: 240 }}
            leftSection={<IconSearch size={16} />}
            value={typed}
            onChange={(event) => type(event.currentTarget.value)}
          />
          <Chosen
            label={t('filter.state')}
            names={[...new Set([...rows.map(of.state), ...filter.states])]}
            chosen={filter.states}
            nameOf={stateLabel}
            onChange={(states) => set({ state: states || undefined })}
          />
          {of.user && (
            <Chosen
              label={t('filter.user')}
              names={[...new Set([...rows.map(of.user), ...filter.users])].toSorted()}
              chosen={filter.users}
              onChange={(users) => set({ user: users || undefined })}
            />
          )}
        </Group>
        {aside}
      </Group>
      {shown.length > 0 && children(shown)}
      {shown.length === 0 && rows.length > 0 && (
        <EmptyState
          icon={<IconSearch size={48} stroke={1.25} />}
          title={t('filter.none')}
          text={t('filter.none_text')}
          action={
            <Button variant="default" onClick={() => set(NOTHING)}>
              {t('filter.clear')}
            </Button>
          }
        />
      )}
    </Stack>
  )
}

interface ChosenProps {
  label: string
  names: string[]
  chosen: readonly string[]
  nameOf?: (name: string) => string
  onChange: (names: string) => void
}

/** Several of the names that there are; none stands for all. */
function Chosen({ label, names, chosen, nameOf = (name) => name, onChange }: ChosenProps) {
  const { t } = useTranslation()
  return (
    <MultiSelect
      aria-label={label}
      placeholder={chosen.length === 0 ? label : undefined}
      w={{ base: '100%', xs: 220 }}
      searchable={names.length > 8}
      clearable
      clearButtonProps={{ 'aria-label': t('filter.any', { label }) }}
      comboboxProps={{ keepMounted: false }}
      nothingFoundMessage={t('filter.none')}
      data={names.map((value) => ({ value, label: nameOf(value) }))}
      value={[...chosen]}
      onChange={(values) => onChange(values.join(','))}
    />
  )
}
