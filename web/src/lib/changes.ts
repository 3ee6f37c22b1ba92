/** What differs between two JSON values, field by field. */
import type { Change } from './types';

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

/** One row for each place that differs. Lists are compared as a whole: their places mean little by themselves. */
export function changesOf(before: unknown, after: unknown, path = ''): Change[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (!isObject(before) && !isObject(after)) return [{ path: path || '·', before, after }];
  const left = isObject(before) ? before : {};
  const right = isObject(after) ? after : {};
  const names = [...new Set([...Object.keys(left), ...Object.keys(right)])];
  return names.flatMap((name) => changesOf(left[name], right[name], path ? `${path}.${name}` : name));
}
