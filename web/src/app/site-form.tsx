import { Group, Stack, Switch, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { changeSite, siteQuery } from '../api/site'
import type { Site } from '../api/types'
import { ShowAs } from '../ui/show-as'
import { SubmitButton } from '../ui/submit-button'
import { apiRequest } from '../util/cli-command'
import { ignoreComposingEnter } from '../util/composing'
import { showDone, Trouble } from './trouble'

/** What the site is called and, for whoever has set it up, how much it asks. */
export function SiteForm({ site, whole }: { site: Site; whole?: boolean }) {
  const { t } = useTranslation(['admin', 'common'])
  const cache = useQueryClient()
  const form = useForm({ initialValues: { name: site.name, confirm_always: site.confirm_always } })
  const change = useMutation({
    mutationFn: changeSite,
    onSuccess: (now) => {
      cache.setQueryData(siteQuery.queryKey, now)
      showDone(t('site.saved'))
    },
  })
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={form.onSubmit((values) => change.mutate(values))}
    >
      <Stack maw={480}>
        {change.error && <Trouble error={change.error} />}
        <TextInput
          label={t('site.name')}
          description={t('site.name_help')}
          maxLength={60}
          {...form.getInputProps('name')}
        />
        {whole && (
          <Switch
            label={t('site.confirm_always')}
            description={t('site.confirm_always_help')}
            {...form.getInputProps('confirm_always', { type: 'checkbox' })}
          />
        )}
        {whole && <ShowAs request={apiRequest('PATCH', '/site', form.values)} />}
        <Group>
          <SubmitButton label={t('common:save')} variant="default" busy={change.isPending} />
        </Group>
      </Stack>
    </form>
  )
}
