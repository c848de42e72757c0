import { Alert, Anchor, Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { endText } from '../../../app/end-text'
import { HowItEnded } from '../../../app/how-it-ended'
import { instanceQuery } from '../../../api/instances'
import { canBeEntered } from '../../../api/jobs'
import { sshDoorQuery } from '../../../api/ssh'
import type { Instance, Job, JobEnd, JobRole, JobTask } from '../../../api/types'
import { ActionButton } from '../../../ui/action-button'
import { CopyField } from '../../../ui/copy'
import { type Fact, Facts } from '../../../ui/facts'
import { IconInfo, IconPlay } from '../../../ui/icons'
import { Records } from '../../../ui/records'
import { Section } from '../../../ui/section'
import { StateBadge } from '../../../ui/state-badge'
import { TimeAgo } from '../../../ui/time-ago'
import { formatBytes, formatDuration } from '../../../util/format'
import { hostForPrograms } from '../../../util/own-address'
import { paths } from '../../../util/path-builder'
import { sshCommand, sshTarget } from '../../../util/ssh-lines'
import { OpenMenu } from '../../instances/open-menu'
import { look } from '../../instances/state'
import { useStart } from '../../instances/use-start'
import { Notes } from '../converted'
import { JobStages } from './stages'

export function JobOverviewTab({ job }: { job: Job }) {
  const { t } = useTranslation('jobs')
  return (
    <Stack>
      <Section title={t('stage.label')}>
        <JobStages job={job} />
      </Section>
      {job.ended && job.ended.cause !== 'succeeded' && (
        <HowItEnded title={t('overview.ended')} end={job.ended}>
          {job.tasks.some((task) => task.instance) && job.kept_until && (
            <Text size="sm">{t('overview.kept')}</Text>
          )}
          <LastLines job={job} end={job.ended} />
        </HowItEnded>
      )}
      <Warnings job={job} />
      <Section title={t('overview.tasks')}>
        {job.tasks.length === 0 ? <NoTasksYet job={job} /> : <Tasks job={job} />}
      </Section>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Section title={t('overview.terms')}>
          <Terms job={job} />
        </Section>
        {job.roles.map((role) => (
          <Section key={role.name} title={t('overview.role', { name: role.name })}>
            <Role role={role} />
          </Section>
        ))}
      </SimpleGrid>
    </Stack>
  )
}

/** Tasks that are still to come have their addresses: who comes by SSH waits for them. */
function NoTasksYet({ job }: { job: Job }) {
  const { t } = useTranslation('jobs')
  return (
    <Stack gap="xs">
      <Text size="sm">{t('overview.no_tasks')}</Text>
      {!job.ended && (
        <>
          <Text size="sm">{t('overview.ssh_already')}</Text>
          {job.roles.map((role) => (
            <CopyField key={role.name} text={`berth ssh ${job.slug}/${role.name}/0`} />
          ))}
        </>
      )}
    </Stack>
  )
}

/** What the task wrote last that decided it, which mostly says why. */
function LastLines({ job, end: { last_lines: lines = [], task } }: { job: Job; end: JobEnd }) {
  const { t } = useTranslation('jobs')
  if (lines.length === 0) return null
  return (
    <>
      <Text size="sm" fw={600}>
        {t('overview.last_lines')}
      </Text>
      <CopyField block text={lines.join('\n')} label={t('overview.copy_lines')} />
      {task && (
        <Anchor component={Link} to={paths.jobLog(job.id, task)} size="sm">
          {t('overview.whole_output')}
        </Anchor>
      )}
    </>
  )
}

function Warnings({ job }: { job: Job }) {
  const { t } = useTranslation('jobs')
  const warnings = job.warnings ?? []
  if (warnings.length === 0) return null
  return (
    <Alert color="blue" icon={<IconInfo />} title={t('overview.warnings')}>
      <Notes notes={warnings} />
    </Alert>
  )
}

function Tasks({ job }: { job: Job }) {
  const { t } = useTranslation(['jobs', 'instances'])
  return (
    <Records
      label={t('overview.tasks')}
      rows={job.tasks}
      rowId={(task) => task.name}
      heading="task"
      columns={[
        {
          id: 'task',
          header: t('overview.task'),
          cell: (task) => (
            <Text fw={600} size="sm">
              {`${task.role}/${task.index}`}
            </Text>
          ),
        },
        {
          id: 'state',
          header: t('column.state'),
          cell: (task) => (
            <Stack gap={4} align="flex-start">
              <StateBadge {...look(task.status.state)} label={t(`state.${task.status.state}`)} />
              {task.end && task.end.cause !== 'succeeded' && (
                <Text size="xs" c="dimmed" className="breakable">
                  {endText(task.end, t)}
                </Text>
              )}
            </Stack>
          ),
        },
        {
          id: 'name',
          header: t('overview.machine'),
          cell: (task) =>
            task.instance ? (
              <Anchor component={Link} to={paths.instance(task.instance)} size="sm" className="breakable">
                {task.name}
              </Anchor>
            ) : (
              <Text size="sm">{task.name}</Text>
            ),
        },
        {
          id: 'address',
          header: t('overview.address'),
          cell: (task) => <Address job={job} task={task} />,
        },
        ...(job.tasks.some(({ cards }) => cards?.length)
          ? [{ id: 'cards', header: t('overview.cards'), cell: (task: JobTask) => <Cards task={task} /> }]
          : []),
      ]}
      actions={(task) => <TaskDoors job={job} task={task} />}
    />
  )
}

/** Where its fellow tasks reach it, with its ports by label; and people by SSH. */
function Address({ job, task: { name, address, ports = {} } }: { job: Job; task: JobTask }) {
  const { t } = useTranslation('jobs')
  const { data: door } = useQuery(sshDoorQuery)
  const target = door && sshTarget(door, hostForPrograms(window.location.hostname), job.user, name)
  return (
    <Stack gap={2} align="flex-start">
      {address ? <CopyField text={address} /> : t('not_yet')}
      {target && !job.ended && <CopyField text={sshCommand(target)} />}
      {Object.entries(ports).map(([label, numbers]) => (
        <Text key={label} size="xs" c="dimmed" className="breakable numbers">
          {`${label} ${numbers.join(', ')}`}
        </Text>
      ))}
    </Stack>
  )
}

function Cards({ task: { cards = [] } }: { task: JobTask }) {
  return (
    <Stack gap={2} align="flex-start">
      {cards.map((card) => (
        <CopyField key={card} text={card} />
      ))}
    </Stack>
  )
}

/** The ways into a task are those into its instance. */
function TaskDoors({ job, task }: { job: Job; task: JobTask }) {
  const { t } = useTranslation('jobs')
  const enabled = canBeEntered(job, task)
  const { data } = useQuery({ ...instanceQuery(task.instance ?? ''), enabled })
  const instance = enabled ? data : undefined
  // Not those of the instance: once it was opened without any, it has none.
  const gpus = job.roles.find((role) => role.name === task.role)?.gpus
  return (
    <Group gap="xs" wrap="nowrap">
      {instance?.actions.includes('start') && <StartTask instance={instance} gpus={gpus} />}
      {instance && <OpenMenu instance={instance} compact />}
      <Anchor component={Link} to={paths.jobLog(job.id, `${task.role}/${task.index}`)} size="sm">
        {t('tab.logs')}
      </Anchor>
    </Group>
  )
}

/** Opens what a failed task left. */
function StartTask({ instance, gpus }: { instance: Instance; gpus?: number }) {
  const { t } = useTranslation('instances')
  const { start, busy, question } = useStart(instance, gpus)
  return (
    <>
      <ActionButton compact label={t('action.start')} icon={IconPlay} busy={busy} onClick={start} />
      {question}
    </>
  )
}

function Terms({ job }: { job: Job }) {
  const { t, i18n } = useTranslation(['jobs', 'instances'])
  const facts: Fact[] = [
    ...(job.description ? [[t('new.description'), job.description] as const] : []),
    [t('column.user'), job.user],
    [t('column.submitted'), <TimeAgo key="at" at={job.created_at} />],
    [t('column.cluster'), job.cluster || t('not_yet')],
    ...(job.pool ? [[t('instances:overview.pool'), job.pool] as const] : []),
    [t('overview.dialect'), t(`dialect.${job.dialect}`, { defaultValue: job.dialect })],
    [t('overview.priority'), String(job.priority)],
    [
      t('overview.limit'),
      job.time_limit_seconds ? formatDuration(job.time_limit_seconds, i18n.language) : t('overview.no_limit'),
    ],
    [t('overview.attempt'), String(job.attempt)],
    ...(job.kept_until
      ? [[t('overview.kept_until'), <TimeAgo key="kept" at={job.kept_until} />] as const]
      : []),
    [t('overview.id'), <CopyField key="id" text={job.id} />],
  ]
  return <Facts facts={facts} />
}

function Role({ role }: { role: JobRole }) {
  const { t } = useTranslation(['jobs', 'instances'])
  return (
    <Facts
      facts={[
        [t('column.tasks'), String(role.tasks)],
        [t('instances:overview.image'), <CopyField key="image" text={role.image} />],
        [t('instances:overview.cpus'), String(role.cpus)],
        [t('instances:overview.memory'), formatBytes(role.memory_bytes)],
        [t('instances:overview.gpus'), String(role.gpus)],
        [
          t('instances:overview.command'),
          role.command === '' ? (
            t('instances:overview.no_command')
          ) : (
            <CopyField key="command" block text={role.command} />
          ),
        ],
      ]}
    />
  )
}
