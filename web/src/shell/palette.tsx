/** ⌘K: go to a page, a job or a run by typing some of it. Pages may offer actions of their own. */
import { signal } from '@preact/signals';
import { useEffect, useId, useState } from 'preact/hooks';
import { api, readOnly } from '../lib/api';
import { t } from '../lib/i18n';
import { useResource, useRested } from '../lib/resource';
import { href, navigate } from '../lib/router';
import { lang, theme } from '../lib/settings';
import type { Job, Page } from '../lib/types';
import { Dialog } from '../ui/feedback';
import { Icon, type IconName } from '../ui/icon';

export const paletteIsOpen = signal(false);

export interface Command {
  text: string;
  detail?: string;
  icon: IconName;
  act: () => void;
}

/** What the page that is shown offers besides the usual. */
const offered = signal<Command[]>([]);

/** Offer actions of a page in the palette while it is shown. */
export function useCommands(commands: Command[], deps: unknown[]): void {
  useEffect(() => {
    offered.value = commands;
    return () => {
      offered.value = [];
    };
  }, deps);
}

addEventListener('keydown', (event) => {
  if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey) || event.shiftKey || event.altKey) return;
  event.preventDefault();
  paletteIsOpen.value = !paletteIsOpen.peek();
});

export function Palette() {
  return paletteIsOpen.value ? <OpenPalette onClose={() => (paletteIsOpen.value = false)} /> : null;
}

function usual(): Command[] {
  const to = (path: string, text: string, icon: IconName): Command => ({ text, icon, act: () => navigate(href(path)) });
  return [
    to('/', t('nav.overview'), 'right'),
    to('/jobs', t('nav.jobs'), 'right'),
    to('/runs', t('nav.runs'), 'right'),
    to('/runs?state=FAILED&state=TIMEOUT&state=DEAD_LETTER', t('palette.failed'), 'bad'),
    to('/chains', t('nav.chains'), 'chain'),
    to('/queues', t('nav.queues'), 'right'),
    to('/system', t('nav.system'), 'right'),
    ...(readOnly.value ? [] : [to('/jobs/new', t('act.new_job'), 'plus')]),
    {
      text: t('shell.language'),
      icon: 'edit',
      act: () => (lang.value = lang.peek() === 'en' ? 'zh-CN' : 'en'),
    },
    {
      text: t('palette.theme'),
      icon: 'moon',
      act: () => (theme.value = document.documentElement.matches('[data-theme=dark]') ? 'light' : 'dark'),
    },
  ];
}

function OpenPalette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const id = useId();
  const wanted = useRested(text.trim(), 150);
  const jobs = useResource<Page<Job>>(
    wanted ? (abort) => api.get('jobs', { name: wanted, page_size: 8 }, abort) : null,
    [wanted],
  );
  const fits = (command: Command): boolean => command.text.toLowerCase().includes(text.trim().toLowerCase());
  const run = /^#?(\d+)$/.exec(text.trim());
  const found: Command[] = [
    ...(run
      ? [{ text: t('palette.run', { id: run[1]! }), icon: 'play' as const, act: () => navigate(href(`/runs/${run[1]}`)) }]
      : []),
    ...offered.value.filter(fits),
    ...usual().filter(fits),
    ...(text.trim() ? (jobs.data?.items ?? []) : []).map((job) => ({
      text: job.name,
      detail: t('palette.job', { id: job.id }),
      icon: 'clock' as const,
      act: () => navigate(href(`/jobs/${job.id}`)),
    })),
  ];
  const chosen = Math.min(at, found.length - 1);
  const go = (command: Command | undefined): void => {
    if (!command) return;
    onClose();
    command.act();
  };
  const steer = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') setAt(Math.min(chosen + 1, found.length - 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(chosen - 1, 0));
    else if (event.key === 'Enter') go(found[chosen]);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    document.getElementById(`${id}-${chosen}`)?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  return (
    <Dialog title={t('palette.title')} onClose={onClose}>
      <div class="palette">
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={found.length ? `${id}-${chosen}` : undefined}
          aria-label={t('palette.title')}
          placeholder={t('palette.placeholder')}
          autofocus
          autocomplete="off"
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={steer}
        />
        <ul id={id} role="listbox" aria-label={t('palette.title')}>
          {found.map((command, index) => (
            <li
              key={command.text + (command.detail ?? '')}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === chosen}
              onMouseMove={() => setAt(index)}
              onClick={() => go(command)}
            >
              <Icon name={command.icon} size={14} />
              <span>{command.text}</span>
              {command.detail && <span class="muted">{command.detail}</span>}
            </li>
          ))}
        </ul>
        {!found.length && !jobs.isLoading && <p class="muted pad">{t('palette.none')}</p>}
      </div>
    </Dialog>
  );
}
