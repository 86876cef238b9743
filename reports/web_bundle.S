/* The files EBB_WEB_SCRIPT and EBB_WEB_STYLE as constants of the program (web_bundle.cpp reads them). */
	.section .rodata
	.global ebb_web_script_begin
	.global ebb_web_script_end
	.global ebb_web_style_begin
	.global ebb_web_style_end
ebb_web_script_begin:
	.incbin EBB_WEB_SCRIPT
ebb_web_script_end:
ebb_web_style_begin:
	.incbin EBB_WEB_STYLE
ebb_web_style_end:
	.section .note.GNU-stack, "", %progbits
