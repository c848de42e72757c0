import { Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { readJob, roleNames } from '../../forms/submit-job'
import { ConfirmDialog } from '../../ui/confirm-dialog'
import { CopyField } from '../../ui/copy'
import { type Fact, Facts } from '../../ui/facts'

/** All roles that the form can show of a file. */
function rolesOf(file: string) {
  const names = roleNames(file)
  const all = names.length === 0 ? [readJob(file)] : names.map((_, role) => readJob(file, role))
  return all.flatMap((values, index) => (values ? [{ name: names[index], values }] : []))
}

/** Whether others would have to do without something meanwhile: then it is asked once more. */
export function costs(file: string): boolean {
  return rolesOf(file).some(({ values }) => Number(values.gpus) > 0)
}

function gpuText(gpus: number | string, model: string): string {
  return model === '' || !(Number(gpus) > 0) ? String(gpus || 0) : `${gpus} × ${model}`
}

function roleFact(label: string, role: string | undefined): Fact[] {
  return role === undefined ? [] : [[label, role]]
}

interface Props {
  file: string
  /** Another name than the one that stands in it. */
  name?: string
  opened: boolean
  busy: boolean
  onConfirm: () => void
  onClose: () => void
}

export function ConfirmSubmit({ file, name: other, opened, busy, onConfirm, onClose }: Props) {
  const { t } = useTranslation('jobs')
  const name = other || readJob(file)?.name || t('new.name_made')
  return (
    <ConfirmDialog
      opened={opened}
      harmless
      title={t('confirm.title', { name })}
      confirm={t('new.submit')}
      busy={busy}
      onConfirm={onConfirm}
      onClose={onClose}
    >
      <Text size="sm">{t('confirm.text')}</Text>
      {rolesOf(file).map(({ name: role, values }) => (
        <Facts
          key={values.role}
          facts={[
            ...roleFact(t('new.role'), role),
            [t('new.image'), <CopyField key="image" text={values.image} />],
            [t('new.tasks'), String(values.tasks || 1)],
            [t('new.cpus'), String(values.cpus || 1)],
            [t('new.memory'), String(values.memoryGib || 2)],
            [t('new.gpus'), gpuText(values.gpus, values.gpuModel)],
            [t('new.command'), <CopyField key="command" block text={values.command} />],
          ]}
        />
      ))}
    </ConfirmDialog>
  )
}
