"""The Chinese labels of the memory plugin, verbatim: its panel shows them in every language."""

from __future__ import annotations

from typing import Final

LABELS_ZH: Final = {
    "user_memory_fact": "用户事实",
    "user_memory_preference": "用户偏好",
    "user_memory_decision": "用户决策",
    "full_context_memory": "全文记忆",
    "full_context_user": "全文 · 用户消息",
    "full_context_assistant": "全文 · AI助手消息",
    "full_context_system": "全文 · 系统消息",
    "full_context_tool": "全文 · 工具调用",
    "full_context_tool_result": "全文 · 工具结果",
    "full_context_others": "全文 · 其他消息",
    "self_improving_learnings": "最佳实践",
    "self_improving_errors": "错误经验",
    "self_improving_feature_requests": "行为诉求",
}
