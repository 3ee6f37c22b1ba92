/** Where we are: a path below the console's base and a query. All state of a page that is worth a link lives here. */
import { signal } from '@preact/signals';

export interface Place {
  path: string;
  query: URLSearchParams;
}

/** The path of the console, with a slash at its end: `/console/`, or `/some/prefix/console/` behind a proxy. */
export const base = new URL(document.baseURI).pathname;
/** The path of the server, with a slash at its end. */
export const root = base.replace(/console\/$/, '');

function read(): Place {
  const path = location.pathname.startsWith(base) ? location.pathname.slice(base.length) : '';
  return { path: `/${path.replace(/\/+$/, '')}`, query: new URLSearchParams(location.search) };
}

export const place = signal<Place>(read());

addEventListener('popstate', () => {
  place.value = read();
});

/** The address of a place, for `href`. */
export function href(path: string, query?: Record<string, string | number | undefined>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== '') params.append(name, String(value));
  }
  const text = params.toString();
  return base + path.replace(/^\//, '') + (text ? `?${text}` : '');
}

export function navigate(to: string, { replace = false } = {}): void {
  if (to === location.pathname + location.search) return;
  const before = place.peek().path;
  history[replace ? 'replaceState' : 'pushState'](null, '', to);
  place.value = read();
  if (place.peek().path === before) return;
  // Another page begins at its top, for the eye and for the keyboard.
  scrollTo(0, 0);
  document.getElementById('main')?.focus({ preventScroll: true });
}

/** Change some of the query and stay; null takes a name away. Anything but a change of page goes back to page 1. */
export function setQuery(changes: Record<string, string | string[] | null>, { replace = true } = {}): void {
  const query = new URLSearchParams(place.peek().query);
  if (!('page' in changes)) query.delete('page');
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const each of Array.isArray(value) ? value : [value]) if (each) query.append(name, each);
  }
  const text = query.toString();
  navigate(location.pathname + (text ? `?${text}` : ''), { replace });
}

export function param(name: string, fallback = ''): string {
  return place.value.query.get(name) ?? fallback;
}

export function params(name: string): string[] {
  return place.value.query.getAll(name);
}

// Every link of ours is a real one; this only spares the reload.
document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const link = (event.target as Element).closest('a');
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
  if (!link.pathname.startsWith(base)) return;
  event.preventDefault();
  navigate(link.pathname + link.search);
});

export type Match = Record<string, string>;

/** `match('/jobs/:id', '/jobs/12')` is `{id: '12'}`. */
export function match(pattern: string, path: string): Match | null {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return null;
  const found: Match = {};
  for (const [i, part] of wanted.entries()) {
    if (part.startsWith(':')) found[part.slice(1)] = decodeURIComponent(given[i]!);
    else if (part !== given[i]) return null;
  }
  return found;
}
