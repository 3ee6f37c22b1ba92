/** What the console says in passing (toasts) and what it asks (dialogs). */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { ApiError, Offline } from './api';
import { t } from './i18n';

export interface Toast {
  id: number;
  tone: 'good' | 'bad' | 'plain';
  text: string;
  detail?: string;
  link?: { href: string; text: string };
}

export const toasts = signal<Toast[]>([]);
let count = 0;

export function say(text: string, { tone = 'good', detail, link }: Partial<Omit<Toast, 'id' | 'text'>> = {}): void {
  const id = ++count;
  toasts.value = [...toasts.peek().slice(-3), { id, tone, text, detail, link }];
  setTimeout(() => unsay(id), tone === 'bad' ? 12_000 : 5000);
}

export function unsay(id: number): void {
  toasts.value = toasts.peek().filter((toast) => toast.id !== id);
}

/** What went wrong, in words for people. */
export function wordsOf(error: unknown): string {
  if (error instanceof Offline) return t('error.offline');
  if (error instanceof Error) return error.message;
  return String(error);
}

export function sayError(error: unknown): void {
  const detail = error instanceof ApiError && error.requestId ? t('error.request', { id: error.requestId }) : undefined;
  say(wordsOf(error), { tone: 'bad', detail });
}

/** Do something; say so when it is done, or what was wrong. True if it was done. */
export async function attempt(act: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await act();
    if (done) say(done);
    return true;
  } catch (error) {
    sayError(error);
    return false;
  }
}

export interface Asked {
  title: string;
  body?: ComponentChildren;
  /** The word on the button that does it. */
  act: string;
  isDangerous?: boolean;
  /** Ask for a reason; it is handed on. */
  wantsReason?: boolean;
  /** Ask until when; it is handed on. */
  wantsUntil?: boolean;
  /** Text that has to be typed first, for what cannot be undone. */
  typed?: string;
}

export interface Answer {
  reason: string;
  until: string;
}

export const asked = signal<{ what: Asked; answer: (answer: Answer | null) => void } | null>(null);

/** Ask before something is done; null if it is not to be. */
export function ask(what: Asked): Promise<Answer | null> {
  return new Promise((answer) => {
    asked.value = {
      what,
      answer: (given) => {
        asked.value = null;
        answer(given);
      },
    };
  });
}

/** Copy text and say so. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // The clipboard is for secure contexts; a selection can be copied anywhere.
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  say(t('done.copied'));
}
