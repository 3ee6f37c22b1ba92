/** Calls of /api/v2. A failure is an ApiError with the server's words, or Offline when nobody answered. */
import { signal } from '@preact/signals';
import { root } from './router';
import { noteServerDate } from './time';

export interface Problem {
  field: string;
  message: string;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId: string,
    readonly problems: Problem[] = [],
  ) {
    super(message);
  }
}

export class Offline extends Error {}

/** True while a key is asked for: the server wants one, and we have none or one it refuses. */
export const needsKey = signal(false);
/** True when the key may look, but not change things. */
export const readOnly = signal(false);
export const online = signal(true);

const KEPT = 'ksana.key';
let key = readKey();

function readKey(): string {
  try {
    return sessionStorage.getItem(KEPT) ?? '';
  } catch {
    return '';
  }
}

/** Send this key from now on; it lives as long as the tab does. */
export function setKey(text: string): void {
  key = text.trim();
  try {
    if (key) sessionStorage.setItem(KEPT, key);
    else sessionStorage.removeItem(KEPT);
  } catch {
    // Without storage the key lives as long as the page.
  }
  readOnly.value = false;
}

export const hasKey = (): boolean => key !== '';

export function authorized(headers: Record<string, string> = {}): Record<string, string> {
  return key ? { ...headers, Authorization: `Bearer ${key}` } : headers;
}

type QueryValue = string | number | boolean | null | undefined;
export type Query = Record<string, QueryValue | QueryValue[]>;

/** The address of a path below /api/v2, or below the root of the server where it begins with a slash. */
export function url(path: string, query?: Query): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== '') params.append(name, String(each));
    }
  }
  const text = params.toString();
  return `${root}${path.startsWith('/') ? path.slice(1) : `api/v2/${path}`}${text ? `?${text}` : ''}`;
}

interface Options {
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

async function call<T>(method: string, path: string, { query, body, signal: abort, headers }: Options = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(url(path, query), {
      method,
      headers: authorized({ ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers }),
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: abort,
    });
  } catch (error) {
    if (abort?.aborted) throw error;
    online.value = false;
    throw new Offline();
  }
  online.value = true;
  noteServerDate(response.headers.get('date'));
  if (!response.ok) throw await failure(method, response);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

async function failure(method: string, response: Response): Promise<ApiError> {
  const said = (await response.json().catch(() => ({}))) as Partial<Record<string, string>> & { problems?: Problem[] };
  if (response.status === 401) needsKey.value = true;
  if (response.status === 403 && method !== 'GET') readOnly.value = true;
  return new ApiError(
    response.status,
    said.code ?? String(response.status),
    said.message ?? response.statusText,
    said.request_id ?? response.headers.get('x-request-id') ?? '',
    said.problems,
  );
}

export const api = {
  get: <T>(path: string, query?: Query, abort?: AbortSignal) => call<T>('GET', path, { query, signal: abort }),
  post: <T>(path: string, body?: unknown, headers?: Record<string, string>) => call<T>('POST', path, { body, headers }),
  patch: <T>(path: string, body: unknown, headers?: Record<string, string>) => call<T>('PATCH', path, { body, headers }),
  put: <T>(path: string, body: unknown) => call<T>('PUT', path, { body }),
  delete: <T = void>(path: string) => call<T>('DELETE', path),
};

/** Learn what our key may do, so that nothing is offered that would be refused. */
export async function learnCaller(): Promise<void> {
  const { scopes } = await api.get<{ name: string; scopes: string[] }>('caller');
  readOnly.value = scopes.every((scope) => scope.endsWith(':read'));
}

/** For If-Match: the version we looked at, so that nobody's change is overwritten unseen. */
export const ifMatch = (version: number): Record<string, string> => ({ 'If-Match': `"${version}"` });
