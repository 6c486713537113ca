"""Labels of fields and values, in English and Chinese, for prompts and pages.

They are not in the message catalogue: the caller of a prompt chooses its language, independent of the request's
language.
"""

from __future__ import annotations

from typing import Literal

Language = Literal["en", "zh"]

_LABELS: dict[str, tuple[str, str]] = {
    "address": ("Address", "地址"),
    "available_hours": ("Available hours", "可用时间"),
    "avoid_topics": ("Topics to avoid", "避免的话题"),
    "cadence": ("Cadence", "频率"),
    "category": ("Category", "类别"),
    "collaborators": ("Collaborators", "协作者"),
    "communication_style": ("Communication style", "沟通风格"),
    "commute_minutes": ("Commute (minutes)", "通勤时间(分钟)"),
    "confidence": ("Confidence", "置信度"),
    "current_projects": ("Current projects", "当前项目"),
    "custom_rules": ("Rules", "自定义规则"),
    "deadline": ("Deadline", "截止日期"),
    "deep_work_blocks": ("Deep work", "深度工作时段"),
    "deep_work_windows": ("Deep work", "深度工作时段"),
    "description": ("Description", "描述"),
    "due_date": ("Due", "到期日"),
    "end": ("To", "至"),
    "expertise": ("Expertise", "专长"),
    "importance": ("Importance", "重要性"),
    "interests": ("Interests", "兴趣"),
    "key_milestones": ("Milestones", "关键里程碑"),
    "language_preference": ("Preferred languages", "语言偏好"),
    "last_updated_at": ("Last updated", "最后更新"),
    "location_preference": ("Preferred location", "地点偏好"),
    "max_meetings_per_day": ("Most meetings a day", "每天最多会议数"),
    "meeting_buffer_minutes": ("Buffer between meetings (minutes)", "会议间隔(分钟)"),
    "meta": ("Provenance", "来源信息"),
    "name": ("Name", "名称"),
    "no_meeting_windows": ("No meetings", "不开会的时段"),
    "notes": ("Notes", "备注"),
    "notification_channel": ("Notification channel", "通知渠道"),
    "notification_preference": ("Notifications", "通知偏好"),
    "occupation": ("Occupation", "职业"),
    "people": ("People", "人际关系"),
    "places": ("Places", "地点"),
    "preference": ("Preference", "喜好"),
    "preferences": ("Preferences", "偏好"),
    "preferred_contact_channel": ("Contact by", "首选联系方式"),
    "preferred_meeting_duration_minutes": ("Preferred meeting length (minutes)", "首选会议时长(分钟)"),
    "preferred_meeting_windows": ("Preferred meeting times", "首选会议时段"),
    "preferred_tools": ("Preferred tools", "常用工具"),
    "primary_language": ("Primary language", "主要语言"),
    "priority": ("Priority", "优先级"),
    "productive_windows": ("Productive hours", "高效时段"),
    "recurring_routines": ("Recurring routines", "日常惯例"),
    "relationship": ("Relationship", "关系"),
    "role": ("Role", "角色"),
    "scheduling_preferences": ("Scheduling", "日程偏好"),
    "source": ("Source", "来源"),
    "start": ("From", "从"),
    "status": ("Status", "状态"),
    "team_context": ("Team", "团队背景"),
    "team_members": ("Team members", "团队成员"),
    "time_windows": ("Times", "时间段"),
    "timezone": ("Time zone", "时区"),
    "user": ("User memory", "用户画像"),
    "weekdays": ("Weekdays", "星期"),
    "work": ("Work profile", "工作画像"),
    "work_habits": ("Work habits", "工作习惯"),
    "work_lifestyle": ("Work and life", "工作与生活方式"),
    "work_rules": ("Work rules", "工作规则"),
    # values
    "active": ("active", "进行中"),
    "agent_inferred": ("inferred by an agent", "智能体推断"),
    "avoid": ("avoid", "避免"),
    "completed": ("completed", "已完成"),
    "import": ("imported", "导入"),
    "like": ("likes it", "喜欢"),
    "neutral": ("neutral", "中立"),
    "operator": ("operator", "运营人员"),
    "paused": ("paused", "已暂停"),
    "planned": ("planned", "计划中"),
    "user_stated": ("said by the user", "用户陈述"),
    "mon": ("Mon", "周一"),
    "tue": ("Tue", "周二"),
    "wed": ("Wed", "周三"),
    "thu": ("Thu", "周四"),
    "fri": ("Fri", "周五"),
    "sat": ("Sat", "周六"),
    "sun": ("Sun", "周日"),
}


def label(word: str, language: Language) -> str:
    """Return the label of a field or of a field's value."""
    return _LABELS[word][language == "zh"]
