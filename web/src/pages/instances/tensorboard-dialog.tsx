import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { PlaceSelects } from '../../app/place-select'
import { Trouble } from '../../app/trouble'
import { createTensorboard } from '../../api/apps'
import { refetchInstances } from '../../api/instances'
import type { CreateTensorboard } from '../../api/types'
import { Dialog } from '../../ui/dialog'
import { IconChart } from '../../ui/icons'
import { ShowAs } from '../../ui/show-as'
import { SubmitButton } from '../../ui/submit-button'
import { apiRequest, tensorboardCommand } from '../../util/cli-command'
import { ignoreComposingEnter } from '../../util/composing'
import { folderProblem, HOME } from '../../util/folder'
import { paths } from '../../util/path-builder'

/** TensorBoard over a folder, without an instance to do it in: for runs that have ended, and images without it. */
export function TensorboardButton() {
  const { t } = useTranslation('apps')
  const [opened, setOpened] = useState(false)
  return (
    <>
      <Button variant="default" leftSection={<IconChart size={18} />} onClick={() => setOpened(true)}>
        {t('own_board.button')}
      </Button>
      <TensorboardDialog opened={opened} onClose={() => setOpened(false)} />
    </>
  )
}

interface Props {
  opened: boolean
  /** Where the folder is, if that is known and not the first. */
  cluster?: string
  onClose: () => void
}

export function TensorboardDialog({ opened, cluster, onClose }: Props) {
  const { t } = useTranslation('apps')
  return (
    <Dialog typed opened={opened} title={t('own_board.title')} onClose={onClose}>
      <BoardForm place={cluster} onClose={onClose} />
    </Dialog>
  )
}

function BoardForm({ place = '', onClose }: { place?: string; onClose: () => void }) {
  const { t } = useTranslation(['apps', 'common'])
  const cache = useQueryClient()
  const navigate = useNavigate()
  const form = useForm({
    initialValues: { folder: HOME, cluster: place },
    validate: {
      folder: (text) => {
        const problem = folderProblem(text.trim())
        return problem && t(`folder.${problem}`)
      },
    },
  })
  const create = useMutation({
    mutationFn: createTensorboard,
    onSuccess: async (instance, { folder }) => {
      await refetchInstances(cache)
      onClose()
      await navigate({ href: paths.tensorboard(instance, folder) })
    },
  })
  const { folder, cluster } = form.values
  const wanted: CreateTensorboard = { folder: folder.trim(), ...(cluster !== '' && { cluster }) }
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={form.onSubmit(() => create.mutate(wanted))}
    >
      <Stack>
        <Text size="sm">{t('own_board.text')}</Text>
        {create.error && <Trouble error={create.error} />}
        <TextInput
          label={t('folder.label')}
          description={t('own_board.folder_help')}
          spellCheck={false}
          autoCapitalize="none"
          data-autofocus
          {...form.getInputProps('folder')}
        />
        <PlaceSelects cluster={cluster} onChange={(change) => form.setValues(change)} />
        <ShowAs command={tensorboardCommand(wanted)} request={apiRequest('POST', '/tensorboards', wanted)} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <SubmitButton label={t('own_board.create')} busy={create.isPending} />
        </Group>
      </Stack>
    </form>
  )
}
