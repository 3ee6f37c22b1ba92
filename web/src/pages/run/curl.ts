/** A run as a command for a terminal: the call its attempt made, or the call that asks for the same again. */
import { shellQuoted } from '../../lib/definition';
import { root } from '../../lib/router';
import type { Attempt, Run } from '../../lib/types';

// What the connection decides, and what must be told anew for each try.
const LEFT_OUT = /^(host|content-length|connection|accept-encoding|transfer-encoding)$/i;

export function curlOf(run: Run, attempt: Attempt | undefined): string {
  if (!attempt?.request) {
    const lines = [`curl -X POST ${shellQuoted(`${location.origin}${root}api/v2/jobs/${run.job_id}/runs`)}`];
    if (run.input !== null) {
      lines.push(`-H 'Content-Type: application/json'`, `-d ${shellQuoted(JSON.stringify({ input: run.input }))}`);
    }
    return lines.join(' \\\n  ');
  }
  const { line, headers, body } = attempt.request;
  const [method, ...address] = line.split(' ');
  const lines = [`curl -X ${method} ${shellQuoted(address.join(' '))}`];
  for (const [name, value] of Object.entries(headers)) {
    if (!LEFT_OUT.test(name)) lines.push(`-H ${shellQuoted(`${name}: ${value}`)}`);
  }
  if (body.text) lines.push(`--data-binary ${shellQuoted(body.text)}`);
  return lines.join(' \\\n  ');
}
