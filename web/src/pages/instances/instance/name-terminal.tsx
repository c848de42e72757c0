import { ActionIcon, Button, Group, Stack, TextInput, Tooltip } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { isTerminalName } from '../../../api/terminal'
import { Dialog } from '../../../ui/dialog'
import { IconPencil } from '../../../ui/icons'
import { SubmitButton } from '../../../ui/submit-button'
import { ignoreComposingEnter } from '../../../util/composing'

interface Props {
  /** Opens the terminal of that name, which is made on first use. */
  onNamed: (name: string) => void
}

/** A terminal under a name that says what it is for. */
export function NameTerminal({ onNamed }: Props) {
  const { t } = useTranslation('streams')
  const [opened, setOpened] = useState(false)
  const close = () => setOpened(false)
  return (
    <>
      <Tooltip label={t('terminal.named')}>
        <ActionIcon
          size={24}
          variant="subtle"
          color="gray"
          aria-label={t('terminal.named')}
          onClick={() => setOpened(true)}
        >
          <IconPencil size={14} />
        </ActionIcon>
      </Tooltip>
      <Dialog typed opened={opened} title={t('terminal.named')} onClose={close}>
        <NameForm
          onNamed={(name) => {
            close()
            onNamed(name)
          }}
          onClose={close}
        />
      </Dialog>
    </>
  )
}

function NameForm({ onNamed, onClose }: Props & { onClose: () => void }) {
  const { t } = useTranslation(['streams', 'common'])
  const [name, setName] = useState('')
  const [wrong, setWrong] = useState(false)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setWrong(!isTerminalName(name.trim()))
    if (isTerminalName(name.trim())) onNamed(name.trim())
  }
  return (
    <form noValidate onKeyDownCapture={ignoreComposingEnter} onSubmit={submit}>
      <Stack>
        <TextInput
          label={t('terminal.name')}
          description={t('terminal.name_help')}
          error={wrong && t('terminal.name_wrong')}
          spellCheck={false}
          autoCapitalize="none"
          data-autofocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <SubmitButton label={t('terminal.named_open')} />
        </Group>
      </Stack>
    </form>
  )
}
