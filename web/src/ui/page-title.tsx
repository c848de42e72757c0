import { Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import { useTranslation } from 'react-i18next'

interface Props {
  children: string
  /** For the browser's tab, when it should say more than the heading. */
  tab?: string
}

/** The one h1 of a page. It takes the focus on navigation, so that a screen reader says where one has arrived. */
export function PageTitle({ children, tab }: Props) {
  const { t } = useTranslation()
  useDocumentTitle(t('title', { page: tab ?? children }))
  return (
    <Title order={1} size="h2" tabIndex={-1} className="breakable">
      {children}
    </Title>
  )
}
