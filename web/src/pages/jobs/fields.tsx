import {
  Alert,
  Autocomplete,
  Button,
  Fieldset,
  Group,
  List,
  SegmentedControl,
  SimpleGrid,
  Stack,
  Switch,
  Textarea,
  TextInput,
} from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { GpuModelSelect } from '../../app/gpu-model-select'
import { PlaceSelects } from '../../app/place-select'
import { useProfessional } from '../../app/professional'
import { imagesQuery, isUsable } from '../../api/site'
import {
  fieldAt,
  type JobValues,
  ONLY_ROLE,
  readJob,
  roleNames,
  withoutRole,
  withRole,
  writeJob,
} from '../../forms/submit-job'
import { Helped } from '../../ui/helped'
import { IconAlert, IconPlus, IconTrash } from '../../ui/icons'
import { type FieldErrors, MONOSPACE, NumberField, type PartProps, type SetJob, TYPED } from './number-field'
import { Professional } from './professional'

/** What is wrong with a place in the file. */
export interface PlacedNote {
  pointer: string
  text: string
}

interface Props {
  file: string
  notes: readonly PlacedNote[]
  onChange: (file: string) => void
  /** Where it is to run, which stands in no file. */
  cluster: string
  onCluster: (cluster: string) => void
}

/** Those that only the professional mode shows. */
const PROFESSIONAL: readonly (keyof JobValues)[] = [
  'retries',
  'tasks',
  'priority',
  'failAfter',
  'succeedAfter',
  'description',
  'mounts',
]

/** What is said at the fields, and what of it there is no field for. */
function useErrors(notes: readonly PlacedNote[], role: number) {
  const [professional] = useProfessional()
  const errors: FieldErrors = {}
  const rest: string[] = []
  for (const { pointer, text } of notes) {
    const field = fieldAt(pointer, role)
    const hidden = field === null || (!professional && PROFESSIONAL.includes(field))
    if (hidden || errors[field] !== undefined) rest.push(text)
    else errors[field] = text
  }
  return { errors, rest }
}

/** The job as a form. The gateway judges it; here is only written down what it is to be. */
export function JobFields({ file, notes, onChange, cluster, onCluster }: Props) {
  const [values, setValues] = useState(() => readJob(file))
  const { errors, rest } = useErrors(notes, values?.role ?? 0)
  if (values === null) return null
  const set: SetJob = (change) => {
    const after = { ...values, ...change }
    setValues(after)
    onChange(writeJob(file, values, after))
  }
  const part = { values, errors, set }
  return (
    <Stack>
      <OtherMistakes texts={rest} />
      <Basics {...part}>
        <PlaceSelects
          cluster={cluster}
          pool={values.pool}
          errors={{ pool: errors.pool }}
          onChange={({ cluster: chosen, pool }) => {
            if (chosen !== undefined) onCluster(chosen)
            if (pool !== undefined) set({ pool })
          }}
        />
      </Basics>
      <Roles
        file={file}
        role={values.role}
        onShow={(role) => setValues(readJob(file, role))}
        onChange={(after, role) => {
          setValues(readJob(after, role))
          onChange(after)
        }}
      />
      <TaskFields key={values.role} {...part} />
      <Professional {...part} />
    </Stack>
  )
}

/** Mistakes that no field stands for. */
function OtherMistakes({ texts }: { texts: readonly string[] }) {
  const { t } = useTranslation('jobs')
  if (texts.length === 0) return null
  return (
    <Alert color="red" icon={<IconAlert />} title={t('new.other_mistakes')}>
      <List size="sm">
        {texts.map((text) => (
          <List.Item key={text} className="breakable">
            {text}
          </List.Item>
        ))}
      </List>
    </Alert>
  )
}

interface RolesProps {
  file: string
  role: number
  onShow: (role: number) => void
  onChange: (file: string, role: number) => void
}

/** Which of the roles is shown; one more, one fewer. */
function Roles({ file, role, onShow, onChange }: RolesProps) {
  const { t } = useTranslation('jobs')
  const roles = roleNames(file)
  const several = roles.length > 1
  return (
    <Group gap="xs">
      {several && (
        <SegmentedControl
          aria-label={t('new.role')}
          data={roles.map((label, index) => ({ value: String(index), label }))}
          value={String(role)}
          onChange={(chosen) => onShow(Number(chosen))}
        />
      )}
      <Button
        variant="default"
        size="xs"
        leftSection={<IconPlus size={16} />}
        onClick={() => onChange(withRole(file), Math.max(roles.length, 1))}
      >
        {t('new.add_role')}
      </Button>
      {several && (
        <Button
          variant="default"
          size="xs"
          leftSection={<IconTrash size={16} />}
          onClick={() => onChange(withoutRole(file, role), 0)}
        >
          {t('new.remove_role', { role: roles[role] })}
        </Button>
      )}
    </Group>
  )
}

function Basics({ children, ...part }: PartProps & { children: ReactNode }) {
  const { values, errors, set } = part
  const { t } = useTranslation('jobs')
  return (
    <Fieldset legend={t('new.basics')}>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <Helped label={t('new.name')} help={t('new.name_help')} error={errors.name}>
          {(props) => (
            <TextInput
              {...props}
              {...TYPED}
              placeholder={t('new.name_made')}
              value={values.name}
              onChange={(event) => set({ name: event.currentTarget.value })}
            />
          )}
        </Helped>
        <Helped label={t('new.gpu_model')} help={t('new.gpu_model_help')} error={errors.gpuModel}>
          {(props) => (
            <GpuModelSelect {...props} value={values.gpuModel} onChange={(gpuModel) => set({ gpuModel })} />
          )}
        </Helped>
        <NumberField field="limitHours" words="limit" placeholder={t('new.limit_none')} {...part} />
        {children}
      </SimpleGrid>
      <Switch
        mt="md"
        label={t('new.keep')}
        description={t('new.keep_help')}
        checked={values.keepOnFailure}
        onChange={(event) => set({ keepOnFailure: event.currentTarget.checked })}
      />
    </Fieldset>
  )
}

function TaskFields(part: PartProps) {
  const { values, errors, set } = part
  const { t } = useTranslation('jobs')
  const { data: images = [] } = useQuery(imagesQuery)
  return (
    <Fieldset legend={t('new.resources')}>
      <Stack>
        <Helped label={t('new.role_name')} help={t('new.role_name_help')} error={errors.roleName}>
          {(props) => (
            <TextInput
              {...props}
              {...TYPED}
              placeholder={ONLY_ROLE}
              value={values.roleName}
              onChange={(event) => set({ roleName: event.currentTarget.value })}
            />
          )}
        </Helped>
        <Helped label={t('new.image')} help={t('new.image_help')} required error={errors.image}>
          {(props) => (
            <Autocomplete
              {...props}
              {...TYPED}
              comboboxProps={{ keepMounted: false }}
              data={[...new Set(images.filter(isUsable).map((image) => image.reference))]}
              value={values.image}
              onChange={(image) => set({ image })}
            />
          )}
        </Helped>
        <Helped label={t('new.command')} help={t('new.command_help')} required error={errors.command}>
          {(props) => (
            <Textarea
              {...props}
              {...TYPED}
              autosize
              minRows={3}
              maxRows={20}
              styles={MONOSPACE}
              value={values.command}
              onChange={(event) => set({ command: event.currentTarget.value })}
            />
          )}
        </Helped>
        <SimpleGrid cols={{ base: 1, xs: 2, sm: 3 }} className="level-fields">
          <NumberField field="cpus" words="cpus" placeholder="1" {...part} />
          <NumberField field="memoryGib" words="memory" placeholder="2" {...part} />
          <NumberField field="gpus" words="gpus" placeholder="0" whole {...part} />
          <NumberField field="shmGib" words="shm" placeholder={t('new.shm_own')} {...part} />
          <Helped label={t('new.ports')} help={t('new.ports_help')} error={errors.ports}>
            {(props) => (
              <TextInput
                {...props}
                {...TYPED}
                placeholder="http, tensorboard"
                value={values.ports}
                onChange={(event) => set({ ports: event.currentTarget.value })}
              />
            )}
          </Helped>
        </SimpleGrid>
      </Stack>
    </Fieldset>
  )
}
