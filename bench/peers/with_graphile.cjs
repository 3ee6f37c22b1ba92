// graphile-worker: 100 at a time from a local queue of 2000, completions written in batches.
const { Logger, makeWorkerUtils, run } = require('graphile-worker');
const work = require('./work.cjs');

work.main(async () => {
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ connectionString: work.where, logger });
  await utils.migrate();
  await work.inShares(1000, (share) =>
    utils.addJobs(Array.from({ length: share }, () => ({ identifier: 'run', payload: {} }))),
  );
  await utils.release();
  await run({
    logger,
    connectionString: work.where,
    noHandleSignals: true,
    taskList: { run: work.run },
    preset: {
      worker: {
        connectionString: work.where,
        concurrentJobs: 100,
        maxPoolSize: 10,
        pollInterval: 500,
        localQueue: { size: 2000 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
  });
  await work.untilEmpty('SELECT COUNT(*) AS left FROM graphile_worker._private_jobs');
});
