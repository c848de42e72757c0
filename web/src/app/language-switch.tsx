import { SegmentedControl, Tooltip, VisuallyHidden } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { currentLanguage, LANGUAGES } from '../i18n/language'
import { useChooseLanguage } from './own-language'

export function LanguageSwitch() {
  const { t } = useTranslation()
  const chooseLanguage = useChooseLanguage()
  return (
    <SegmentedControl
      size="xs"
      aria-label={t('language')}
      value={currentLanguage()}
      onChange={(language) => void chooseLanguage(language)}
      data={LANGUAGES.map(({ code, short, name }) => ({
        value: code,
        label: (
          <Tooltip label={name}>
            <span lang={code}>
              <span aria-hidden>{short}</span>
              <VisuallyHidden>{name}</VisuallyHidden>
            </span>
          </Tooltip>
        ),
      }))}
    />
  )
}
