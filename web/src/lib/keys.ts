/** Keys of the keyboard: pages say what they listen to, and `?` lists it. */
import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Key } from './i18n';

export interface Shortcut {
  keys: string;
  what: Key;
}

/** What listens now, for the list of keys. */
export const shortcuts = signal<Shortcut[]>([]);

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

// Enter and space belong to whatever link or button has the focus.
const isPressing = (event: KeyboardEvent): boolean =>
  (event.key === 'Enter' || event.key === ' ') && event.target instanceof Element && event.target.closest('a,button,summary') !== null;

/** `useKey('r', 'key.run', run)`; ignored while somebody types or a dialog is open. */
export function useKey(keys: string, what: Key, act: (event: KeyboardEvent) => void, isOn = true): void {
  const latest = useRef(act);
  latest.current = act;
  // With the drawing, not after it: whoever sees a row may press a key at once.
  useLayoutEffect(() => {
    if (!isOn) return;
    const entry = { keys, what };
    shortcuts.value = [...shortcuts.peek(), entry];
    const listen = (event: KeyboardEvent): void => {
      if (event.key !== keys || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
      if (isPressing(event)) return;
      if (document.querySelector('dialog[open]')) return;
      event.preventDefault();
      latest.current(event);
    };
    addEventListener('keydown', listen);
    return () => {
      removeEventListener('keydown', listen);
      shortcuts.value = shortcuts.peek().filter((each) => each !== entry);
    };
  }, [keys, what, isOn]);
}
