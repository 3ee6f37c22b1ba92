/** Words for people: `t('jobs.title')`. Keys are checked by the compiler against i18n/en.json. */
import { effect, signal } from '@preact/signals';
import type en from '../../i18n/en.json';
import { lang, type Lang } from './settings';

export type Key = keyof typeof en;
type Words = Record<Key, string>;
type Values = Record<string, string | number>;

const load: Record<Lang, () => Promise<{ default: Words }>> = {
  en: () => import('../../i18n/en.json'),
  'zh-CN': () => import('../../i18n/zh-CN.json'),
};

const words = signal<Words | null>(null);

/** Resolves once the words of the chosen language are here; a later change of language swaps them in place. */
export function startWords(): Promise<void> {
  return new Promise((ready) => {
    effect(() => {
      const wanted = lang.value;
      void (load[wanted] ?? load.en)().then((module) => {
        if (lang.peek() !== wanted) return;
        words.value = module.default;
        ready();
      });
    });
  });
}

export function t(key: Key, values?: Values): string {
  const text = words.value?.[key] ?? key;
  return values ? text.replace(/\{(\w+)\}/g, (all, name: string) => String(values[name] ?? all)) : text;
}

/** A counted sentence: `tn('jobs.selected', 3)` picks `jobs.selected.one` or `jobs.selected.other`; both may use {n}. */
export function tn(key: CountedKey, n: number, values?: Values): string {
  const form = new Intl.PluralRules(lang.value).select(n) === 'one' ? 'one' : 'other';
  return t(`${key}.${form}` as Key, { n: number(n), ...values });
}

type CountedKey = Key extends infer K ? (K extends `${infer Stem}.other` ? Stem : never) : never;

/** The word for a value of the API (`state.success`), or the value itself where we have none. */
export function word(prefix: string, value: string): string {
  const key = `${prefix}.${value.toLowerCase()}`;
  return words.value && key in words.value ? t(key as Key) : value;
}

export function number(n: number): string {
  return new Intl.NumberFormat(lang.value).format(n);
}

/** What the server says in both languages, in the one that is shown. */
export const said = (words: { en: string; zh: string }): string => (lang.value === 'en' ? words.en : words.zh);
