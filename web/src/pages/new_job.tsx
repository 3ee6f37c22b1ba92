/** A new job, from nothing or from another one. */
import { useEffect, useState } from 'preact/hooks';
import { api } from '../lib/api';
import { draftOf, emptyDraft, type Draft } from '../lib/definition';
import { say } from '../lib/feedback';
import { t } from '../lib/i18n';
import { useResource } from '../lib/resource';
import { href, navigate, param } from '../lib/router';
import type { Job } from '../lib/types';
import { PageHead } from '../ui/controls';
import { Pending } from '../ui/feedback';
import { Definition } from './job/definition';

export function NewJobPage() {
  const from = param('from');
  const origin = useResource<Job>(from ? (abort) => api.get(`jobs/${from}`, {}, abort) : null, [from]);
  const [draft, setDraft] = useState<Draft | null>(from ? null : emptyDraft());
  useEffect(() => {
    if (origin.data && !draft) setDraft({ ...draftOf(origin.data), name: t('job.copy_of', { name: origin.data.name }) });
  }, [origin.data]);
  const create = async (): Promise<void> => {
    const job = await api.post<Job>('jobs', draft);
    say(t('done.created', { name: job.name }));
    navigate(href(`/jobs/${job.id}`));
  };
  return (
    <>
      <PageHead title={t('act.new_job')} trail={[{ href: href('/jobs'), text: t('nav.jobs') }]} />
      {draft ? <Definition draft={draft} onDraft={setDraft} saveText={t('act.create')} isChanged save={create} /> : <Pending {...origin} />}
    </>
  );
}
