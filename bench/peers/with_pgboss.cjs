// pg-boss: four pollers of 12500 each, twice a second; with smaller batches its rate is bound by polling.
const PgBoss = require('pg-boss');
const work = require('./work.cjs');

work.main(async () => {
  const boss = new PgBoss(work.where);
  boss.on('error', () => {});
  await boss.start();
  await boss.createQueue('bench');
  await work.inShares(1000, (share) =>
    boss.insert(Array.from({ length: share }, () => ({ name: 'bench', data: {} }))),
  );
  for (let poller = 0; poller < 4; poller += 1) {
    await boss.work('bench', { batchSize: 12500, pollingIntervalSeconds: 0.5 }, async (jobs) => {
      await Promise.all(jobs.map(work.run));
    });
  }
  await work.untilEmpty("SELECT COUNT(*) AS left FROM pgboss.job WHERE name = 'bench' AND state < 'completed'");
});
