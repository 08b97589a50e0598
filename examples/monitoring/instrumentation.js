// Sends traces to the collector at OTEL_EXPORTER_OTLP_ENDPOINT, by default http://localhost:4318.
import { context, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'

const provider = new TracerProvider({
  resource: resourceFromAttributes({ 'service.name': process.env.OTEL_SERVICE_NAME ?? 'partner-api' }),
  spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
})
trace.setGlobalTracerProvider(provider)
propagation.setGlobalPropagator(new W3CTraceContextPropagator())
// Without it, calls of the store have no spans.
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
process.once('beforeExit', () =>
  // Without a collector, a clean stop is still one.
  provider.shutdown().catch((error) => console.error(`The last traces were not sent: ${error.message}`)))
