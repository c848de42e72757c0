import { Radio, SimpleGrid, Stack, useMantineColorScheme } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { SCHEMES } from '../../app/appearance-menu'
import { useChooseLanguage } from '../../app/own-language'
import { currentLanguage, isLanguage, LANGUAGES } from '../../i18n/language'
import { Section } from '../../ui/section'

/** Colours are kept by this browser: a lab's shared screen need not look like one's own. */
export function AppearanceSection() {
  const { t } = useTranslation(['settings', 'common'])
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const chooseLanguage = useChooseLanguage()
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      <Section title={t('common:language')}>
        <Radio.Group
          aria-label={t('common:language')}
          description={t('appearance.language_text')}
          value={currentLanguage()}
          onChange={(value) => isLanguage(value) && void chooseLanguage(value)}
        >
          <Stack gap="xs" mt="xs">
            {LANGUAGES.map(({ code, name }) => (
              <Radio key={code} value={code} label={<span lang={code}>{name}</span>} />
            ))}
          </Stack>
        </Radio.Group>
      </Section>
      <Section title={t('common:appearance.label')}>
        <Radio.Group
          aria-label={t('common:appearance.label')}
          description={t('appearance.here')}
          value={colorScheme}
          onChange={(value) => {
            const chosen = SCHEMES.find(({ scheme }) => scheme === value)
            if (chosen) setColorScheme(chosen.scheme)
          }}
        >
          <Stack gap="xs" mt="xs">
            {SCHEMES.map(({ scheme }) => (
              <Radio key={scheme} value={scheme} label={t(`common:appearance.${scheme}`)} />
            ))}
          </Stack>
        </Radio.Group>
      </Section>
    </SimpleGrid>
  )
}
