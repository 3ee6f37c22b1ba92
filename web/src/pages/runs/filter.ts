/** Which runs are shown, as the URL says it. */
import { param, params } from '../../lib/router';
import { isFinal } from '../../lib/states';
import { nowMs } from '../../lib/time';

export const RANGES: Record<string, number> = {
  '15m': 900_000,
  '1h': 3_600_000,
  '6h': 21_600_000,
  '24h': 86_400_000,
  '7d': 604_800_000,
  '30d': 2_592_000_000,
};
export const ANY = 'all';

export interface RunFilter {
  name?: string;
  error?: string;
  state?: string[];
  job_id?: string;
  tag?: string;
  kind?: string;
  surface?: string;
  children?: boolean;
}

const TEXTS = ['name', 'error', 'job_id', 'tag', 'kind', 'surface'] as const;

export function filterOfUrl(): RunFilter {
  const filter: RunFilter = Object.fromEntries(TEXTS.map((name) => [name, param(name)]).filter(([, value]) => value));
  const state = params('state');
  if (state.length) filter.state = state;
  if (param('children')) filter.children = true;
  return filter;
}

/** The range by name; empty where the URL bounds it by instants. */
export function rangeOfUrl(): string {
  if (param('since') || param('until')) return '';
  const range = param('range');
  if (RANGES[range] || range === ANY) return range;
  // What is not over yet may have begun long ago, and is wanted all the same.
  const states = params('state');
  return states.length && states.every((state) => !isFinal(state)) ? ANY : '24h';
}

/** The stretch as the API takes it, reckoned from now. */
export function stretchOfUrl(): { since?: string; until?: string } {
  const range = rangeOfUrl();
  if (!range) return { since: param('since') || undefined, until: param('until') || undefined };
  return range === ANY ? {} : { since: new Date(nowMs() - RANGES[range]!).toISOString() };
}
