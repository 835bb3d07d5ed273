/** 按名称取用的文本：名称来自服务器和数据，不止这些。 */
const byName = (texts: Record<string, string>): Record<string, string> => texts;

/** 中文文本。`en.ts` mirrors this file key by key; the compiler holds them together. */
export const zh = {
  lang: "zh" as "zh" | "en", // `en.ts` 的类型由此而来
  status: byName({ delivered: "已签收", in_delivery: "配送中" }),
  product: byName({ "ORD-001": "无线耳机", "ORD-002": "机械键盘", "ORD-003": "4K 显示器", "ORD-004": "鼠标垫" }),

  order: {
    instructions:
      "售后订单服务：查询订单、单笔退款（需审批，500.00 元及以上需用户再次确认）、批量退款（每笔不超过 500.00 元）。",
    queryTool: "按订单号查询商品、状态和金额。",
    refundTool: "为一个已签收的订单退款。500.00 元及以上会再次请用户确认。",
    batchTool: "为多个已签收、金额不超过 500.00 元的订单退款，并报告进度。",
    orderId: "订单号，例如 ORD-001",
    orderIds: "订单号列表，或用逗号分隔的字符串",
    reason: "退款原因",
    callerId: "调用者标识，由系统填写",
    resource: "订单详情",
    summary: (id: string, product: string, status: string, amount: string) =>
      `订单 ${id}：${product}，${status}，${amount} 元`,
    refundedAlready: (amount: string, at: string) => `，已于 ${at} 退款 ${amount} 元`,
    unknown: (id: string) => `订单 ${id} 不存在，请核对订单号`,
    notDelivered: (id: string, status: string) => `订单 ${id} 当前为「${status}」，只有已签收的订单可以退款`,
    already: (id: string, amount: string) => `订单 ${id} 已经退款（${amount} 元），不能重复退款`,
    tooLarge: (id: string, amount: string) => `订单 ${id} 金额 ${amount} 元超过批量退款上限 500.00 元，请单独退款`,
    confirm: (id: string, product: string, amount: string) =>
      `大额退款：确认为订单 ${id}（${product}）退款 ${amount} 元吗？`,
    confirmChoice: "确认退款",
    cancelChoice: "取消退款",
    confirmed: (id: string, amount: string) => `用户已确认大额退款：订单 ${id}，${amount} 元`,
    choseCancel: (id: string) => `用户选择了取消退款，订单 ${id} 没有任何改动`,
    declined: (id: string) => `用户拒绝确认，订单 ${id} 没有任何改动`,
    dismissed: (id: string) => `用户没有作答就关闭了确认，订单 ${id} 没有任何改动`,
    refunded: (id: string, product: string, amount: string) => `退款成功：订单 ${id}（${product}），${amount} 元`,
    batchStarted: (n: number) => `批量退款开始，共 ${n} 个订单`,
    batchDone: (id: string, amount: string) => `${id} 退款成功，${amount} 元`,
    batchSkipped: (id: string, reason: string) => `${id} 跳过：${reason}`,
    batchFinished: (done: number, total: number) => `批量退款完成：${done}/${total} 成功`,
    batchSize: (max: number) => `一次最多 ${max} 个订单，至少一个`,
  },

  notification: {
    instructions: "通知服务：发送短信，提供退货政策和退款回复模板。",
    smsTool: "向用户手机发送短信。发送前先用 validate_phone 校验手机号。",
    phone: "11 位手机号，以 1 开头",
    content: "短信内容，1 到 500 字",
    policyTitle: "退货政策",
    promptTitle: "退款成功后的回复模板",
    promptOrderId: "订单号",
    promptAmount: "退款金额（元）",
    badPhone: (phone: string) => `手机号 ${phone} 不正确：应为 11 位数字并以 1 开头`,
    sent: (phone: string) => `短信已发送至 ${phone}`,
    failed: (id: number) => `短信网关没有接受这条短信；它已保存在发件箱（编号 ${id}），请稍后重试`,
    policy: `# 退货政策

1. 无理由退货：签收后 7 天内，商品不影响二次销售的，可无理由退货。
2. 质量问题：签收后 30 天内可换货，往返运费由商家承担。
3. 赠品：退货时赠品须一并退回。
4. 退款时效：商家收到退货后 3 个工作日内，款项原路退回。
`,
    reply: (orderId: string, amount: string) =>
      `您好，订单 ${orderId} 的退款已受理成功，退款金额 ${amount} 元，款项将在 3 个工作日内原路退回。给您带来不便，敬请谅解。`,
  },

  access: {
    otherCaller: (value: string, subject: string) =>
      `调用者 ${value} 与令牌不符：令牌属于 ${subject}，只能以该用户的身份操作`,
    expired: (server: string, at: string) => `${server}没有接受您的令牌：它已于 ${at} 过期，请换一个新的。`,
    issuedElsewhere: (server: string, issuer: string, audience: string) =>
      `${server}没有接受您的令牌：它由 ${issuer} 签发、发给 ${audience}，请换一个由${server}信任的签发方发给它的令牌。`,
    refused: (server: string) => `${server}没有接受您的令牌，请换一个发给它的令牌。`,
    needed: (server: string, variable: string) => `${server}需要令牌：请用环境变量 ${variable} 提供。`,
    unreadable: (server: string) => `读不到${server}的令牌，请检查给出的令牌或它的文件。`,
    lacking: (server: string, scopes: string) =>
      `您的令牌没有${server}所需的权限${scopes && ` ${scopes}`}，这一步没有执行。`,
    hidden: (server: string, scopes: string, tools: readonly string[]) =>
      `您的令牌没有${server}的权限 ${scopes}，不能使用：${tools.join("、")}。`,
  },

  agent: {
    system: `你是店铺的售后助手。用工具查询和处理订单，不要编造结果。
- 订单不存在等永久性错误：如实告诉用户，不要重试。
- 一个订单用 process_refund，多个订单用 batch_refund。
- 退款成功后，按「退款回复模板」回复，并询问是否需要短信通知。
- 发短信前先用 validate_phone 校验手机号，再用 send_sms。
- 有关退货政策的问题，只依据「退货政策」回答。`,
    policyHeading: "退货政策",
    templateHeading: "退款回复模板",
    unavailableHeading: "当前不可用（如实告诉用户原因，不要尝试）",
    phoneTool: "校验手机号：11 位数字，以 1 开头。",
    phoneValid: (phone: string) => `手机号 ${phone} 格式正确`,
    phoneInvalid: (phone: string) => `手机号 ${phone} 格式不正确：应为 11 位数字并以 1 开头`,
    approvalDescription: (id: string) => `为订单 ${id} 退款需要人工审批`,
  },

  offline: {
    honest:
      "我是离线替身，不是真正的语言模型；想自由对话请用 --model 指定模型（例如 --model deepseek:deepseek-chat）。我能做这些：\n" +
      "- 查询订单，例如「查询订单ORD-001」\n- 退款，例如「ORD-003 屏幕坏了，需要退款」\n- 批量退款，例如「ORD-002、ORD-004 由于质量问题，请退款」\n" +
      "- 发短信，例如「给 18812345678 发短信，内容：已退款」\n- 回答退货政策\n- 直接调用工具：/tool 名称 {参数}",
    defaultReason: "用户申请退款",
    unclearBatch: (ids: string) =>
      `批量退款不再审批，所以我只按明确的说法办理，现在没有退款。要退款请说「请退款 ${ids}」，要查询请说「查询 ${ids}」。`,
    needOrder: "请告诉我订单号，例如 ORD-001。",
    needPhone: "请告诉我接收短信的手机号（11 位，以 1 开头）。",
    needContent: "请告诉我短信内容，例如「内容：ORD-001 已经退款」。",
    offerSms: "需要短信通知吗？把手机号和内容发给我即可。",
    notRefunded: (text: string) => `退款没有完成：${text}。`,
    rejected: (reason: string) => `退款没有通过审批：${reason}。`,
    nothingRefunded: "好的，不退款，订单没有任何改动。",
    batch: (done: number, total: number, amount: string) =>
      `批量退款完成：${total} 个订单中成功 ${done} 个，共退款 ${amount} 元。`,
    batchSkipped: (list: string) => `未退款：${list}。`,
    smsSent: (phone: string, content: string) => `手机号校验通过，短信已发送至 ${phone}：「${content}」。`,
    smsWithheld: "因为退款没有完成，短信没有发送。",
    failed: (text: string) => `操作没有成功：${text}。`,
    unavailable: (server: string) => `${server}现在连不上，请稍后再试。`,
    serverNames: byName({ order: "订单服务", notification: "通知服务" }),
    smsDefault: (orderId: string, amount: string) => `您的订单 ${orderId} 已退款 ${amount} 元，3 个工作日内到账。`,
    noPolicy: "现在读不到退货政策（通知服务不可用），请稍后再问。",
  },

  chat: {
    welcome: (model: string, thread: string) =>
      `售后服务台  模型：${model}  会话：${thread}  （/help 看用法，quit 离开）`,
    offlineNotice: "提示：正在使用离线替身，不是真正的模型。",
    help: "直接输入要办的事。命令：/tools 工具  /prompts 提示模板  /名称 参数=值 使用模板  @资源地址 附上资源  /audit 审计记录  /status 服务状态  /tool 名称 {参数} 直接调用工具  quit、exit、q、退出 离开",
    prompt: "你> ",
    assistant: "助手：",
    empty: "请输入内容。",
    tooLong: (bytes: number, limit: number) => `这条消息有 ${bytes} 字节，超过上限 ${limit} 字节，没有发送。`,
    bye: "再见。会话已保存，下次启动会接着进行。",
    paused: "这个问题会保留，下次启动时可以继续回答。",
    pending: "上次有一个问题还没有回答：",
    resumed: "上次的处理被中断，现在接着做。",
    questionCut: "下面的问题太长，没有完整显示；请只批准您看得到的内容。",
    superseded: "这个问题已在别处得到回答，你的回答没有使用。",
    threadBusy: (thread: string) => `会话 ${thread} 正在另一个窗口处理中，请稍后再试。`,
    tool: (name: string) => `调用 ${name}`,
    toolFailed: "失败",
    formActions: "decline  拒绝回答   cancel  关闭问题",
    progress: "进度",
    level: byName({
      debug: "调试",
      info: "信息",
      notice: "注意",
      warning: "警告",
      error: "错误",
      critical: "严重",
      alert: "警报",
      emergency: "紧急",
    }),
    audit: "审计",
    noAudit: "本轮没有调用远程工具",
    note: (text: string) => `注意：${text}`,
    serverDown: (server: string, reason: string) =>
      `注意：${server}连不上（${reason}）。与它有关的功能暂时不可用，恢复后会自动继续。`,
    serverUp: (server: string) => `${server}已恢复。`,
    serverExited: (server: string) => `${server}意外退出，正在重新启动……`,
    portTaken: (server: string, port: number, url: string) => `端口 ${port} 已被占用，${server}改用 ${url}`,
    serving: (url: string) => `正在提供服务：${url}`,
    stopHint: "按 Ctrl-C 停止。没有终端，所以不启动对话；用 npm run chat 进行对话。",
    stopped: "已停止。",
    diskFull: "磁盘已满，这一轮无法保存。请先腾出空间，再继续。",
    waits: (server: string) => `${server}现在连不上：您的请求已保留，正在等待，恢复后您再发一条消息就会接着办理。`,
    stillWaits: "您的请求已保留，正在等待，问题解决后您再发一条消息就会接着办理。",
    notTaken: "您刚才输入的内容没有发送，先办理等待中的请求；请到时再说一遍。",
    turnFailed: (reason: string) => `这一轮没有完成：${reason}。可以再试一次。`,
    unknownCommand: (name: string) => `没有 /${name} 这个命令或模板，/help 看用法。`,
    promptUsage: (name: string, args: string) => `用法：/${name} ${args}`,
    attached: (uri: string) => `已附上资源 ${uri}`,
    noResource: (uri: string) => `没有资源 ${uri}，没有附上。`,
    none: "（无）",
  },
};
