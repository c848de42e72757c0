import { Button, Skeleton, Stack, Text } from '@mantine/core'
import { useFullscreenElement, useMediaQuery } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, type RefCallback, useId, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../../app/trouble'
import { openApp } from '../../../api/apps'
import type { Instance } from '../../../api/types'
import { IconExternal } from '../../../ui/icons'
import { type FramedApp, paths } from '../../../util/path-builder'
import { AppStart } from './app-start'
import { AppToolbar } from './app-toolbar'
import classes from './framed-app.module.css'
import { NotNow } from './not-now'
import { useApp } from './use-app'

/**
 * What a page of the instance may do in our frame. It has an origin of its own, so scripts and its own storage are safe;
 * it may lead the whole window elsewhere only when somebody clicks.
 */
const ALLOWED =
  'allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox allow-downloads ' +
  'allow-modals allow-pointer-lock allow-top-navigation-by-user-activation'

interface Props {
  instance: Instance
  app: FramedApp
  folder?: string
  /** What stands beside the toolbar. */
  children?: ReactNode
}

/** JupyterLab, VS Code or TensorBoard inside the console; on a phone, the way to it. */
export function FramedAppView(props: Props) {
  const { instance, app, folder } = props
  const wide = useMediaQuery('(min-width: 48em)', true, { getInitialValueInEffect: false })
  const [round, setRound] = useState(0)
  if (!instance.actions.includes('open')) return <NotNow instance={instance} action="open" />
  if (!wide) return <InAnotherTab {...props} />
  // Another run of the instance has none of the programs of the one before.
  const since = instance.status.state === 'running' ? instance.status.since : ''
  return <Framed key={`${since}/${round}/${app}/${folder}`} {...props} onReload={() => setRound(round + 1)} />
}

function Framed({ instance, app, folder, children, onReload }: Props & { onReload: () => void }) {
  const { ref, toggle } = useFullscreenElement<HTMLIFrameElement>()
  const used = useApp(instance.id, app, folder)
  // Once it was there it stays on the screen: the gateway's own page says what became of it.
  const [ready, setReady] = useState(false)
  if (!ready && used.app?.state === 'ready') setReady(true)
  return (
    <Stack gap="xs" flex={1} mih={0}>
      <AppToolbar
        onReload={onReload}
        end={
          ready
            ? { name: app, busy: used.busy, onEnd: () => used.act('stop', () => setReady(false)) }
            : undefined
        }
        onFullScreen={ready ? () => void toggle() : undefined}
        newTab={paths.enter(instance.id, app, folder)}
        link={used.app?.url}
      >
        {children}
      </AppToolbar>
      {ready ? (
        <Frame instance={instance} app={app} folder={folder} frame={ref} />
      ) : (
        <AppStart name={app} used={used} />
      )}
    </Stack>
  )
}

interface FrameProps {
  instance: Instance
  app: FramedApp
  folder?: string
  frame: RefCallback<HTMLIFrameElement | null>
}

function Frame({ instance, app, folder, frame }: FrameProps) {
  const { t } = useTranslation('apps')
  const entry = useEntry(instance.id, app, folder)
  if (entry.error) return <Trouble error={entry.error} onRetry={() => void entry.refetch()} />
  if (entry.data === undefined) return <Skeleton className="after-a-moment" flex={1} />
  return (
    <iframe
      ref={frame}
      className={classes.frame}
      src={entry.data}
      title={t('frame', { app: t(`app.${app}`), name: instance.name })}
      sandbox={ALLOWED}
      allow="clipboard-read; clipboard-write; fullscreen"
    />
  )
}

/** An address that signs in works once: each frame asks for its own, and no other frame ever sees it. */
function useEntry(instance: string, app: FramedApp, folder?: string) {
  const frame = useId()
  return useQuery({
    queryKey: ['entry', frame, instance, app, folder ?? ''],
    queryFn: () => openApp(instance, app, { folder }),
    staleTime: Infinity,
    gcTime: 0,
    refetchInterval: false,
    refetchOnReconnect: false,
    refetchOnWindowFocus: false,
  })
}

function InAnotherTab({ instance, app, folder, children }: Props) {
  const { t } = useTranslation('apps')
  return (
    <Stack align="flex-start">
      {children}
      <Text>{t('small_screen', { app: t(`app.${app}`) })}</Text>
      <Button
        component="a"
        href={paths.enter(instance.id, app, folder)}
        target="_blank"
        rel="noopener"
        leftSection={<IconExternal size={18} />}
      >
        {t('toolbar.new_tab')}
      </Button>
    </Stack>
  )
}
