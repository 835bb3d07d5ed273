// What the packages share with each other and promise to nobody else: it may change with any release.
export { readBounded } from "./bounds.ts";
export { CAPABILITY_OF } from "./contract/declaration.ts";
export { parseUrl, urlHost } from "./host.ts";
export { canonicalJson, digest, JsonError, jsonSize, toJson } from "./json.ts";
export { resolvePointer, subschemas } from "./json-schema/document.ts";
export { describeFault, type SchemaFault, surveySchema } from "./json-schema/survey.ts";
export { type Layers, runLayers } from "./layers.ts";
export { LOG_LEVELS } from "./log-levels.ts";
export { LEGACY_REVISION, MODERN_REVISION } from "./meta.ts";
export {
  anything,
  callable,
  checkOptions,
  didYouMean,
  flag,
  kindOf,
  milliseconds,
  type OptionCheck,
  type OptionChecks,
  oneOf,
  positive,
  refuseOption,
  text,
  zeroOrMore,
} from "./options.ts";
export { testPattern } from "./pattern.ts";
export { redactor } from "./redactor.ts";
export {
  describeIssues,
  type IssueWords,
  isSchema,
  issueMessage,
  issuePath,
  jsonSchemaOf,
  validate,
  valueAt,
  type WrongField,
  wrongFields,
} from "./schema.ts";
export { openTelemetryApi } from "./telemetry/api.ts";
export { addressAttribute, type ContentOf, checkTelemetry, contentOf } from "./telemetry/content.ts";
export {
  countAnswer,
  countCall,
  countNegotiation,
  type GaugeValue,
  gauge,
  type Side,
  startMetrics,
} from "./telemetry/metrics.ts";
export {
  carriedTrace,
  currentTrace,
  inSpan,
  isTraceparent,
  isTracestate,
  noteOnSpan,
  type OpenSpan,
  type SpanAbout,
  sessionAttribute,
  type TraceCarrier,
  traceIdOf,
} from "./telemetry/spans.ts";
export { shownValue, visibleText } from "./text.ts";
