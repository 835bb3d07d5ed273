export {
  type AuditAnchor,
  type AuditBroken,
  AuditError,
  type AuditExportOptions,
  type AuditedCall,
  type AuditFilter,
  type AuditIntact,
  type AuditKind,
  type AuditQuery,
  type AuditRecord,
  type AuditSinkPair,
  type AuditStore,
  type AuditSweepOptions,
  type AuditTailOptions,
  type AuditVerifyOptions,
  type NewAuditEntry,
  type OpenCall,
} from "./audit/audit.ts";
export type { ContextKey, ContextStore, KeptContext } from "./context/contexts.ts";
export type { EventBus } from "./event/events.ts";
export { isProcessGone, processHolder } from "./lease/holder.ts";
export type { Acquired, HeldLease, LeaseStore } from "./lease/leases.ts";
export type { MemoryOptions } from "./outcome/memory-outcomes.ts";
export {
  type Claim,
  type ClaimRequest,
  claimOrWait,
  type Lease,
  LeaseLostError,
  type OutcomeStore,
} from "./outcome/outcomes.ts";
export { StorageError } from "./sql/storage-error.ts";
export { openMemory, type Stores, type Swept } from "./stores.ts";
export { TasksFullError } from "./task/memory-tasks.ts";
export type {
  NewTask,
  TaskEnd,
  TaskFilter,
  TaskQuestion,
  TaskRecord,
  TaskRun,
  TaskStatus,
  TaskStore,
} from "./task/tasks.ts";
