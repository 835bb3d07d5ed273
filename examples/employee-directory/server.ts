import { createServer, ToolError } from "@tenon/server";
import { jwt } from "@tenon/server/auth";
import { createSigningKey, publicPem } from "@tenon/server/development";
import { z } from "zod";

export const ISSUER = "my-company-auth-server";
export const AUDIENCE = "internal-mcp-server";
/** The authorization server's key pair; a real one keeps the private half to itself. */
export const key = await createSigningKey({ algorithm: "RS256" });

const employees: Record<string, { name: string; department: string; title: string }> = {
  E001: { name: "张三", department: "技术部", title: "高级工程师" },
  E002: { name: "李四", department: "财务部", title: "财务经理" },
  E003: { name: "王五", department: "市场部", title: "市场总监" },
};
/** CNY. */
const budgets: Record<string, { total: number; used: number }> = {
  技术部: { total: 5_000_000, used: 3_200_000 },
  财务部: { total: 1_500_000, used: 900_000 },
  市场部: { total: 3_000_000, used: 2_100_000 },
};
const wan = (yuan: number): string => `${yuan / 10_000} 万元`;

/** Who asked what, as the tools saw it. */
export const seen: string[] = [];

const server = createServer({
  name: "employee-directory",
  version: "1.0.0",
  auth: jwt({ issuer: ISSUER, audience: AUDIENCE, publicKey: publicPem(key), algorithms: ["RS256"] }),
  logSink: () => undefined,
});
server.tool(
  "query_employee",
  {
    description: "按工号查询员工的姓名、部门和职位。",
    input: z.object({ employee_id: z.string().describe("工号，例如 E001") }),
    annotations: { readOnlyHint: true },
    scopes: ["employees:read"],
  },
  ({ employee_id }, ctx) => {
    seen.push(`${ctx.caller?.subject} query_employee ${employee_id}`);
    const found = employees[employee_id];
    if (!found) throw new ToolError(`没有工号为 ${employee_id} 的员工`);
    return `${employee_id} ${found.name}，${found.department}，${found.title}`;
  },
);
server.tool(
  "query_department_budget",
  {
    description: "查询部门的年度预算：总额、已用、剩余。",
    input: z.object({ department: z.string().describe("部门名称，例如 技术部") }),
    annotations: { readOnlyHint: true },
    scopes: ["budgets:read"],
  },
  ({ department }, ctx) => {
    seen.push(`${ctx.caller?.subject} query_department_budget ${department}`);
    const found = budgets[department];
    if (!found) throw new ToolError(`没有名为 ${department} 的部门`);
    const { total, used } = found;
    return `${department}预算：总额 ${wan(total)}，已用 ${wan(used)}，剩余 ${wan(total - used)}`;
  },
);

export default server;
await server.run(import.meta, { transport: "http" });
