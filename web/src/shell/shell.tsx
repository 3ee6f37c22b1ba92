/** What frames every page: navigation, find, live chip, zone, language, theme. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { hasKey, needsKey, online, readOnly, setKey } from '../lib/api';
import { t, type Key } from '../lib/i18n';
import { useKey } from '../lib/keys';
import { held, liveState, restartLive, type LiveState } from '../lib/live';
import { href, place } from '../lib/router';
import { lang, theme, type Theme } from '../lib/settings';
import { Button, Chip } from '../ui/controls';
import { Question, Toasts } from '../ui/feedback';
import { Icon, type IconName } from '../ui/icon';
import { KeyHelp } from './key_help';
import { Palette, paletteIsOpen } from './palette';
import { ZoneSwitch } from './zone_switch';

const pages: [string, Key][] = [
  ['/', 'nav.overview'],
  ['/jobs', 'nav.jobs'],
  ['/runs', 'nav.runs'],
  ['/chains', 'nav.chains'],
  ['/queues', 'nav.queues'],
  ['/system', 'nav.system'],
];

export function Shell({ children }: { children: ComponentChildren }) {
  const [showsKeys, setShowsKeys] = useState(false);
  useKey('?', 'key.help', () => setShowsKeys(true));
  useKey('/', 'key.find', () => (paletteIsOpen.value = true));
  useKey('p', 'key.pause_live', () => (held.value = !held.peek()));
  const { path } = place.value;
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        {t('shell.skip')}
      </a>
      <header class="shell">
        <a class="brand" href={href('/')} aria-label="Ksana">
          <Logo />
          <span>ksana</span>
        </a>
        <nav class="pages" aria-label={t('shell.pages')}>
          {pages.map(([to, name]) => {
            const isHere = to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`);
            return (
              <a key={to} href={href(to)} aria-current={isHere ? 'page' : undefined}>
                {t(name)}
              </a>
            );
          })}
        </nav>
        <span class="grow" />
        <button type="button" class="find" onClick={() => (paletteIsOpen.value = true)}>
          <Icon name="search" size={14} />
          <span>{t('shell.find')}</span>
          <kbd>{/Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘K' : 'Ctrl K'}</kbd>
        </button>
        {readOnly.value && <Chip text={t('shell.read_only')} tone="warn" title={t('shell.read_only_why')} />}
        <LiveChip />
        <ZoneSwitch />
        <LanguageSwitch />
        <ThemeSwitch />
        {hasKey() && !needsKey.value && (
          <Button
            text={t('shell.sign_out')}
            quiet
            onClick={() => {
              setKey('');
              needsKey.value = true;
              restartLive();
            }}
          />
        )}
      </header>
      {!online.value && (
        <div class="banner" role="alert">
          <Icon name="warn" size={14} /> {t('error.offline')}
        </div>
      )}
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <Palette />
      {showsKeys && <KeyHelp onClose={() => setShowsKeys(false)} />}
      <Question />
      <Toasts />
    </>
  );
}

// With <base href> a bare fragment would lead to another page.
function skip(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

function Logo() {
  return (
    <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" class="logo-ground" />
      <path d="M9 6v20M9 17l13-11M13 14l10 12" class="logo-mark" />
    </svg>
  );
}

const liveWords: Record<LiveState, Key> = {
  live: 'live.live',
  paused: 'live.paused',
  reconnecting: 'live.reconnecting',
  polling: 'live.polling',
};

function LiveChip() {
  const state = liveState.value;
  return (
    <button
      type="button"
      class={`live ${state}`}
      title={t(held.value ? 'live.resume' : 'live.pause')}
      aria-pressed={held.value}
      onClick={() => (held.value = !held.peek())}
    >
      <span class="dot" aria-hidden="true" />
      <span>{t(liveWords[state])}</span>
    </button>
  );
}

function LanguageSwitch() {
  const isChinese = lang.value === 'zh-CN';
  return (
    <button
      type="button"
      class="button plain quiet"
      lang={isChinese ? 'en' : 'zh-CN'}
      title={t('shell.language')}
      onClick={() => (lang.value = isChinese ? 'en' : 'zh-CN')}
    >
      {isChinese ? 'EN' : '中文'}
    </button>
  );
}

const themes: Theme[] = ['auto', 'light', 'dark'];
const themeIcons: Record<Theme, IconName> = { auto: 'auto', light: 'sun', dark: 'moon' };
const themeWords: Record<Theme, Key> = { auto: 'theme.auto', light: 'theme.light', dark: 'theme.dark' };

function ThemeSwitch() {
  const current = theme.value;
  return (
    <Button
      icon={themeIcons[current]}
      label={t('shell.theme', { theme: t(themeWords[current]) })}
      quiet
      onClick={() => (theme.value = themes[(themes.indexOf(current) + 1) % themes.length]!)}
    />
  );
}
