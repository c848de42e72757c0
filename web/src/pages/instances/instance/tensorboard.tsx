import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'

import type { Instance } from '../../../api/types'
import { ignoreComposingEnter } from '../../../util/composing'
import { folderProblem, HOME } from '../../../util/folder'
import { paths } from '../../../util/path-builder'
import { FramedAppView } from './framed-app'
import { NotNow } from './not-now'

/** The variable of an instance that was made for one folder. */
const BOARD_OF = 'TENSORBOARD_LOGDIR'

interface Props {
  instance: Instance
  /** The folder to show, once one is chosen. */
  folder?: string
}

/** TensorBoard in the instance itself, over a folder that is chosen here. */
export function TensorboardTab({ instance, folder: chosen }: Props) {
  const folder = chosen ?? instance.env[BOARD_OF]
  if (!instance.actions.includes('open')) return <NotNow instance={instance} action="open" />
  const picker = <FolderPicker key={folder} instance={instance} folder={folder} />
  if (folder === undefined) return picker
  return (
    <FramedAppView instance={instance} app="tensorboard" folder={folder}>
      {picker}
    </FramedAppView>
  )
}

function FolderPicker({ instance, folder }: Props) {
  const { t } = useTranslation('apps')
  const navigate = useNavigate()
  const [text, setText] = useState(folder ?? HOME)
  const [wrong, setWrong] = useState<string | null>(null)
  const show = (event: FormEvent) => {
    event.preventDefault()
    const problem = folderProblem(text.trim())
    setWrong(problem && t(`folder.${problem}`))
    if (problem === null) void navigate({ href: paths.tensorboard(instance, text.trim()) })
  }
  const chosen = folder !== undefined
  return (
    <form noValidate onKeyDownCapture={ignoreComposingEnter} onSubmit={show}>
      <Stack gap="xs" maw={chosen ? undefined : 560}>
        {!chosen && <Text>{t('folder.why')}</Text>}
        <Group gap="xs" align="flex-start">
          <TextInput
            flex={1}
            miw={220}
            size={chosen ? 'xs' : 'sm'}
            label={chosen ? undefined : t('folder.label')}
            aria-label={t('folder.label')}
            description={chosen ? undefined : t('folder.help')}
            inputWrapperOrder={['label', 'input', 'description', 'error']}
            spellCheck={false}
            autoCapitalize="none"
            value={text}
            error={wrong}
            onChange={(event) => setText(event.currentTarget.value)}
          />
          <Button
            type="submit"
            size={chosen ? 'xs' : 'sm'}
            mt={chosen ? 0 : 26}
            variant={chosen ? 'default' : 'filled'}
          >
            {t('folder.show')}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
