import { Alert, Anchor, Code, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { changesQuery } from '../../api/images'
import type { Changes, Instance } from '../../api/types'
import { IconAlert } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { formatBytes } from '../../util/format'

interface Props {
  instance: Instance
  /** Paths that are left out; undefined for the site's own. */
  exclude: string[] | undefined
}

/** What a save would put into the image, and what not. */
export function WhatIsIn({ instance, exclude }: Props) {
  const { t } = useTranslation('images')
  const { data, error, isPending } = useQuery(changesQuery(instance.id, exclude))
  return (
    <Stack gap="xs" component="section" aria-label={t('save.changes')}>
      <Text fw={600} size="sm">
        {t('save.changes')}
      </Text>
      {error && <Trouble error={error} />}
      {isPending && <LoadingRows rows={1} height={48} />}
      {data && <ChangesView changes={data} />}
    </Stack>
  )
}

function ChangesView({ changes }: { changes: Changes }) {
  const { t, i18n } = useTranslation('images')
  const list = new Intl.ListFormat(i18n.language, { type: 'conjunction' })
  return (
    <>
      <Text size="sm">
        {t('save.sum', { files: changes.files, bytes: formatBytes(changes.bytes) })}
        {changes.deleted > 0 && ` ${t('save.deleted', { count: changes.deleted })}`}
      </Text>
      {changes.secrets.length > 0 && (
        <Alert color="yellow" icon={<IconAlert />} title={t('save.secrets')}>
          <Stack gap={2} align="flex-start">
            <Some
              of={changes.secrets}
              draw={(path) => (
                <Code key={path} className="breakable">
                  {path}
                </Code>
              )}
            />
          </Stack>
        </Alert>
      )}
      <PackagesView packages={changes.packages} />
      {changes.largest.length > 0 && (
        <Stack gap={2}>
          <Text size="sm" c="dimmed">
            {t('save.largest')}
          </Text>
          <Some
            of={changes.largest}
            draw={({ path, bytes }) => (
              <Group key={path} justify="space-between" wrap="nowrap" gap="xs">
                <Code className="breakable">{path}</Code>
                <Text size="xs" className="numbers" style={{ whiteSpace: 'nowrap' }}>
                  {formatBytes(bytes)}
                </Text>
              </Group>
            )}
          />
        </Stack>
      )}
      {changes.mounts.length > 0 && (
        <Text size="sm" c="dimmed" className="breakable">
          {t('save.not_in', { paths: list.format(changes.mounts) })}
        </Text>
      )}
      {changes.excluded.length > 0 && (
        <Text size="sm" c="dimmed" className="breakable">
          {t('save.excluded', { paths: list.format(changes.excluded.map(({ path }) => path)) })}
        </Text>
      )}
    </>
  )
}

/** What package managers have added or changed, and what is gone. */
function PackagesView({ packages }: { packages: Changes['packages'] }) {
  const { t } = useTranslation('images')
  const { pip = [], conda = [], apt = [], removed = [] } = packages ?? {}
  const kinds = [
    ['pip', pip.map(({ name, version }) => `${name} ${version}`)],
    ['conda', conda.map(({ name, version }) => `${name} ${version}`)],
    ['apt', apt.map(({ name, version }) => `${name} ${version}`)],
    ['removed', removed],
  ] as const
  const some = kinds.filter(([, names]) => names.length > 0)
  if (some.length === 0) return null
  return (
    <Stack gap={4}>
      <Text size="sm" c="dimmed">
        {t('save.packages')}
      </Text>
      {some.map(([kind, names]) => (
        <Group key={kind} gap={4}>
          <Text size="sm" fw={600}>
            {kind === 'removed' ? t('save.removed') : kind}
          </Text>
          <Some
            of={names}
            draw={(name) => (
              <Code key={name} className="breakable">
                {name}
              </Code>
            )}
          />
        </Group>
      ))}
    </Stack>
  )
}

/** As many as fit without scrolling far. */
const SHOWN = 5

interface SomeProps<T> {
  of: readonly T[]
  draw: (one: T) => React.ReactNode
}

/** The first few, with how many more there are and a way to see them. */
function Some<T>({ of, draw }: SomeProps<T>) {
  const { t } = useTranslation('images')
  const [all, setAll] = useState(false)
  const more = of.length - SHOWN
  return (
    <>
      {(all ? of : of.slice(0, SHOWN)).map(draw)}
      {more > 0 && !all && (
        <Anchor component="button" type="button" size="sm" onClick={() => setAll(true)}>
          {t('save.more', { count: more })}
        </Anchor>
      )}
    </>
  )
}
