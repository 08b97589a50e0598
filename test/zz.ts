import { startServer } from './postgres/server.ts'
const t0 = performance.now()
const s = await startServer()
const t1 = performance.now()
for (let i = 0; i < 5; i++) await s.createDatabase()
const t2 = performance.now()
await s.close()
console.log(t1 - t0, (t2 - t1) / 5, performance.now() - t2, process.cpuUsage())
