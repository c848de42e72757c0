// Why something cannot be done. The gateway says what can be; that the rest waits for another state is not always true.

import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { meQuery } from '../api/session'
import type { Instance, InstanceAction, InstanceStatus, Job, JobAction, Me } from '../api/types'

/** `state`: it could be done in another one. */
export type Why = 'state' | 'task' | 'task_over' | 'owner' | 'owner_or_admin'

const OVER: readonly InstanceStatus['state'][] = ['stopping', 'stopped', 'succeeded', 'failed']

export function whyNot({ user, job, status }: Instance, action: InstanceAction, me: Me): Why {
  if (user !== me.name && action === 'delete' && me.role !== 'admin') return 'owner_or_admin'
  if (user !== me.name && action !== 'delete' && action !== 'stop') return 'owner'
  if (job && (action === 'restart' || action === 'delete')) return 'task'
  if (job && action === 'start' && OVER.includes(status.state)) return 'task_over'
  return 'state'
}

export function whyNotJob({ user }: Job, action: JobAction, me: Me): Why {
  if (user === me.name || action === 'stop') return 'state'
  if (action === 'rerun' || action === 'logs') return 'owner'
  return me.role === 'admin' ? 'state' : 'owner_or_admin'
}

/** Why an action cannot be done with the instance, in words; undefined if it can. */
export function useWhyNot(instance: Instance): (action: InstanceAction) => string | undefined {
  const { t } = useTranslation(['instances', 'common'])
  const { data: me } = useQuery(meQuery)
  return (action) => {
    if (instance.actions.includes(action)) return undefined
    const why = me ? whyNot(instance, action, me) : 'state'
    return why === 'state'
      ? t(`not_now.${action}`, { state: t(`state.${instance.status.state}`) })
      : t(`common:cannot.${why}`, { user: instance.user })
  }
}

/** The same of a job. */
export function useWhyNotJob(job: Job): (action: JobAction) => string | undefined {
  const { t } = useTranslation(['jobs', 'common'])
  const { data: me } = useQuery(meQuery)
  return (action) => {
    if (job.actions.includes(action)) return undefined
    const why = me ? whyNotJob(job, action, me) : 'state'
    return why === 'state'
      ? t(`not_now.${action}`, { state: t(`state.${job.status.state}`) })
      : t(`common:cannot.${why}`, { user: job.user })
  }
}
