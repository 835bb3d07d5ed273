/** What both servers want to know with every call. They and the program that calls them agree on it here. */
import { z } from "zod";

/** Who asks, and in which session. */
export const caller = z.object({
  user_id: z.string().describe("Who asks."),
  session_id: z.string().describe("The conversation it belongs to."),
  trace_id: z.string().optional().describe("Leads back to the state of the agent at that moment."),
});
