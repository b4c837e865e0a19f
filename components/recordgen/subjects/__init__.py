"""What rows and records may show: pictures, and boxes, outlines, masks and keypoints in them.

Formats read it, tasks store it, and exports write it; the core passes it on unread.
"""
