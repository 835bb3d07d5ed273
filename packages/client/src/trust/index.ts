/** What a person accepts of a server: the file that records it, what changed since, and what to look at first. */
export { commandLineOf } from "../connection/launch.ts";
export { diffTool, formatChanges, type ToolChange } from "./definition.ts";
export {
  acceptStart,
  acceptTools,
  forgetServer,
  type Lock,
  type PinnedServer,
  type PinnedTool,
  readLock,
} from "./lock.ts";
export { reviewTools, type ToolFinding } from "./review.ts";
