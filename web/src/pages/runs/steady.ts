/** A list of runs that holds still: rows change in place, and new ones wait until they are asked for. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, type Query } from '../../lib/api';
import { onLive } from '../../lib/live';
import { useResource } from '../../lib/resource';
import type { Page, Run } from '../../lib/types';

interface Found {
  key: string;
  page: Page<Run>;
}

export interface SteadyRuns {
  page: Page<Run> | undefined;
  /** How many rows the list would have that are not shown. */
  waiting: number;
  /** Show them. */
  accept: () => void;
  /** Fetch anew and show whatever comes. */
  refresh: () => void;
  error: unknown;
  isLoading: boolean;
}

const MOVED = ['state', 'reason', 'attempt', 'due_at', 'started_at', 'ended_at', 'error'] as const;

/** `query` is called at each fetch, for bounds that move with the clock; `key` says when it asks for something else. */
export function useSteadyRuns(query: () => Query, key: string): SteadyRuns {
  const found = useResource<Found>(
    async (abort) => ({ key, page: await api.get<Page<Run>>('runs', query(), abort) }),
    [key],
    { live: ['run'], pace: 2000 },
  );
  const [shown, setShown] = useState<Found>();
  const takesAll = useRef(false);
  useEffect(() => {
    const { data } = found;
    if (!data) return;
    setShown((old) => (!old || old.key !== data.key || !old.page.items.length || takesAll.current ? data : merged(old, data)));
    takesAll.current = false;
  }, [found.data]);
  // A row may leave the list by what becomes of it; it stays in sight, and tells.
  useEffect(
    () =>
      onLive(({ topic, id, patch }) => {
        if (topic !== 'run' || !patch) return;
        setShown((old) => {
          const row = old?.page.items.find((run) => run.id === id);
          return old && row ? replaced(old, new Map([[row.id, moved(row, patch)]])) : old;
        });
      }),
    [],
  );
  const ids = new Set(shown?.page.items.map((run) => run.id));
  const fresh = found.data?.key === shown?.key ? (found.data?.page.items ?? []).filter((run) => !ids.has(run.id)) : [];
  return {
    page: shown?.page,
    waiting: shown?.page.page === 1 ? fresh.length : 0,
    accept: () => setShown(found.data),
    refresh: () => {
      takesAll.current = true;
      found.refresh();
    },
    error: found.error,
    isLoading: found.isLoading,
  };
}

function moved(run: Run, patch: Record<string, unknown>): Run {
  const next = { ...run, ...Object.fromEntries(MOVED.filter((name) => name in patch).map((name) => [name, patch[name]])) } as Run;
  const { started_at: from, ended_at: to } = next;
  return { ...next, duration_ms: from && to ? Date.parse(to) - Date.parse(from) : null };
}

const replaced = (found: Found, rows: Map<number, Run>): Found => ({
  ...found,
  page: { ...found.page, items: found.page.items.map((run) => rows.get(run.id) ?? run) },
});

const merged = (old: Found, now: Found): Found => replaced(old, new Map(now.page.items.map((run) => [run.id, run])));
