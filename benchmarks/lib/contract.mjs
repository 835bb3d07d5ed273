// The contract of the servers that are measured with one, and what their clients know of it.
const keys = [{ kid: "bench", alg: "HS256", secret: "bench-bench-bench-bench-bench-bench-bench-b" }];

const schema = {
  type: "object",
  properties: { user_id: { type: "string" }, session_id: { type: "string" }, trace_id: { type: "string" } },
  required: ["user_id", "session_id"],
};

export const serverContract = { schema, keys };

export const clientContract = {
  keys,
  context: { user_id: "u_001", session_id: "s_001", trace_id: "4bf92f3577b34da6a3ce929d0e0e4736" },
};
