/** What a person chose for this browser: language, theme, zone. Kept in localStorage, shared by all tabs. */
import { effect, signal, type Signal } from '@preact/signals';

export type Lang = 'en' | 'zh-CN';
export type Theme = 'auto' | 'light' | 'dark';
/** `browser`, `utc`, `job` (the zone of the job an instant belongs to), or the name of a zone. */
export type Zone = string;

// A browser may forbid storage; then the choice lasts as long as the page.
function read(name: string): string | null {
  try {
    return localStorage.getItem(`ksana.${name}`);
  } catch {
    return null;
  }
}

function write(name: string, value: string): void {
  try {
    localStorage.setItem(`ksana.${name}`, value);
  } catch {
    return;
  }
}

const kept = new Map<string, Signal<string>>();

function remembered<T extends string>(name: string, fallback: T): Signal<T> {
  const value = signal<T>((read(name) as T | null) ?? fallback);
  kept.set(`ksana.${name}`, value as unknown as Signal<string>);
  let first = true;
  effect(() => {
    const now = value.value;
    if (!first) write(name, now);
    first = false;
  });
  return value;
}

addEventListener('storage', (event) => {
  const value = event.key === null ? undefined : kept.get(event.key);
  if (value && event.newValue !== null) value.value = event.newValue;
});

export const lang = remembered<Lang>('lang', navigator.language.toLowerCase().startsWith('zh') ? 'zh-CN' : 'en');
export const theme = remembered<Theme>('theme', 'auto');
export const zone = remembered<Zone>('zone', 'browser');

effect(() => {
  document.documentElement.lang = lang.value;
});
effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
